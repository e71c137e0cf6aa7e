# How every target of the project is compiled.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(rowhouse_settings INTERFACE)
target_compile_features(rowhouse_settings INTERFACE cxx_std_20)
target_compile_options(rowhouse_settings INTERFACE
  # One operation, one rounding (kernels/arithmetic.h).
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-fmad=false -ftz=false -prec-div=true -prec-sqrt=true>"
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror>
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-std=c++20 --expt-relaxed-constexpr -Werror=all-warnings -Xcompiler=-Wall,-Wextra>"
  # GCC 12 finds uninitialized members in optionals that hold nothing.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>
  # clang 14 calls no square root constant; nvcc wants such functions constexpr.
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety;-Wno-invalid-constexpr>)
target_include_directories(rowhouse_settings INTERFACE ${PROJECT_SOURCE_DIR})

if(ROWHOUSE_SANITIZER STREQUAL "address")
  target_compile_options(rowhouse_settings INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  target_link_options(rowhouse_settings INTERFACE -fsanitize=address,undefined)
elseif(ROWHOUSE_SANITIZER STREQUAL "thread")
  target_compile_options(rowhouse_settings INTERFACE
    -fsanitize=thread -fno-omit-frame-pointer)
  # GCC says of a fence that TSan does not know it. Ours order memory that
  # another process maps, which it cannot follow anyway.
  target_compile_options(rowhouse_settings INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_link_options(rowhouse_settings INTERFACE -fsanitize=thread)
endif()
