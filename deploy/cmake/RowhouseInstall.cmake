# Installed and exported package: find_package(rowhouse) gives rowhouse::client.

include(CMakePackageConfigHelpers)

set(rowhouse_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rowhouse)

install(TARGETS rowhouse-server rowhouse RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY client/include/rowhouse
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY proto/rowhouse
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rowhouse/proto
  FILES_MATCHING PATTERN "*.proto")

if(ROWHOUSE_ENABLE_CUDA)
  set(rowhouse_cuda_targets rowhouse_kernels_cuda)
endif()

# The client and what it is linked from.
set_target_properties(rowhouse_client PROPERTIES EXPORT_NAME client)
install(TARGETS
    rowhouse_client rowhouse_client_core rowhouse_kernels rowhouse_kernels_cpu
    rowhouse_proto rowhouse_wire rowhouse_wire_core ${rowhouse_cuda_targets}
  EXPORT rowhouse
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT rowhouse NAMESPACE rowhouse:: DESTINATION ${rowhouse_package_dir})

configure_package_config_file(
  deploy/cmake/rowhouse-config.cmake.in rowhouse-config.cmake
  INSTALL_DESTINATION ${rowhouse_package_dir})
write_basic_package_version_file(rowhouse-config-version.cmake
  COMPATIBILITY SameMajorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/rowhouse-config.cmake
    ${PROJECT_BINARY_DIR}/rowhouse-config-version.cmake
  DESTINATION ${rowhouse_package_dir})
