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
if(ROWHOUSE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(ROWHOUSE_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
if(ROWHOUSE_ENABLE_CUDA)
  find_package(CUDAToolkit 12 REQUIRED)
endif()
