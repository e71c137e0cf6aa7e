# What the project is built on; nothing is downloaded.

find_package(absl REQUIRED)
find_package(TBB REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(OpenBLAS REQUIRED IMPORTED_TARGET openblas)
find_package(Protobuf 3.21 REQUIRED)
find_package(gRPC REQUIRED)
find_package(OpenSSL REQUIRED)  # That of gRPC.
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)  # Checksums of push logs; gRPC needs it too.
find_path(ROWHOUSE_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # Of checkpoints.
if(ROWHOUSE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ROWHOUSE_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
if(ROWHOUSE_ENABLE_CUDA)
  find_package(CUDAToolkit 12 REQUIRED)
  # Not where ROWHOUSE_NCCL is OFF; where it is ON, NCCL must be there.
  if(ROWHOUSE_NCCL STREQUAL "OFF")
    unset(ROWHOUSE_NCCL_INCLUDE_DIR CACHE)
  else()
    find_path(ROWHOUSE_NCCL_INCLUDE_DIR nccl.h
      HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(ROWHOUSE_NCCL STREQUAL "ON" AND NOT ROWHOUSE_NCCL_INCLUDE_DIR)
      message(FATAL_ERROR "no nccl.h: set ROWHOUSE_NCCL_INCLUDE_DIR to its "
        "folder, or ROWHOUSE_NCCL to OFF")
    endif()
  endif()
endif()
