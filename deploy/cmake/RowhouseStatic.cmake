# Links archives in place of shared objects, so that programs run on machines
# without our dependencies. Debian's packages name the shared objects alone; the
# archives lie beside them. What has none (oneTBB, spdlog and fmt, Google
# Benchmark, the C++ library) stays shared, and travels with a bundle.

function(rowhouse_prefer_archive target)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations ITEMS "")
    set(property IMPORTED_LOCATION)
    if(configuration AND NOT configuration STREQUAL "configurations-NOTFOUND")
      set(property IMPORTED_LOCATION_${configuration})
    endif()
    get_target_property(library ${target} ${property})
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${library}")
    if(NOT archive STREQUAL library AND EXISTS ${archive})
      set_target_properties(${target} PROPERTIES ${property} ${archive})
    endif()
  endforeach()
endfunction()

get_property(rowhouse_imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS rowhouse_imported)
  get_target_property(kind ${target} TYPE)
  if(kind MATCHES "SHARED_LIBRARY|UNKNOWN_LIBRARY")
    rowhouse_prefer_archive(${target})
  endif()
endforeach()
# What the shared object brings along by itself.
set_property(TARGET protobuf::libprotobuf APPEND PROPERTY
  INTERFACE_LINK_LIBRARIES ZLIB::ZLIB)

# The script is read first, so that it names what the archive need not.
find_library(ROWHOUSE_OPENBLAS_ARCHIVE libopenblas.a
  HINTS ${OpenBLAS_LIBRARY_DIRS} REQUIRED)
set_property(TARGET PkgConfig::OpenBLAS PROPERTY INTERFACE_LINK_LIBRARIES
  ${CMAKE_CURRENT_LIST_DIR}/openblas_kernels.ld ${ROWHOUSE_OPENBLAS_ARCHIVE})
find_library(ROWHOUSE_RE2_ARCHIVE libre2.a REQUIRED)
set_property(TARGET re2::re2 PROPERTY
  INTERFACE_LINK_LIBRARIES ${ROWHOUSE_RE2_ARCHIVE} Threads::Threads)

# Programs that travel name no folder of the machine that built them.
add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>")
