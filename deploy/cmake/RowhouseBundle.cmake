# The target `bundle`: bundle/ in the build folder, and rowhouse-bundle.tar.xz of
# it, for GPU hosts that have the driver, the CUDA runtime and cuBLAS, and none of
# our dependencies.
#
#   bin/    server, tool, demo, tests, benchmarks, stripped
#   lib/    shared objects of which there is no archive
#   tests/  golden data
#   bench/, deploy/, config/, text/  peers and cycles, checks, a configuration,
#                                    the demo's text

set(rowhouse_bundled
  rowhouse-server rowhouse rowhouse_ngram_lm rowhouse_gpu_tests
  rowhouse_gpu_bench)
# Before LD_LIBRARY_PATH, which may hold other versions.
foreach(program IN LISTS rowhouse_bundled)
  set_target_properties(${program} PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib:/usr/local/cuda/lib64")
  target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
endforeach()

set(rowhouse_bundle_parts COMPONENT bundle EXCLUDE_FROM_ALL)
install(TARGETS ${rowhouse_bundled}
  RUNTIME_DEPENDENCIES
    DIRECTORIES ${CMAKE_LIBRARY_PATH}
    PRE_EXCLUDE_REGEXES "^libcu" "^ld-linux" "^lib(c|m|rt|dl|pthread)\\.so"
  RUNTIME DESTINATION bin ${rowhouse_bundle_parts}
  LIBRARY DESTINATION lib ${rowhouse_bundle_parts})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/golden
  DESTINATION tests ${rowhouse_bundle_parts})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bench/peers
    ${PROJECT_SOURCE_DIR}/bench/report
  DESTINATION bench ${rowhouse_bundle_parts} PATTERN __pycache__ EXCLUDE)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/bench/cycle.sh
  DESTINATION bench ${rowhouse_bundle_parts})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/gpu_check.sh
  DESTINATION deploy ${rowhouse_bundle_parts})
install(FILES ${PROJECT_SOURCE_DIR}/deploy/config/example.textproto
  DESTINATION config ${rowhouse_bundle_parts})
install(FILES ${PROJECT_SOURCE_DIR}/client/examples/ngram_lm/kjv.txt
  DESTINATION text ${rowhouse_bundle_parts})

add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -E rm -rf bundle
  COMMAND ${CMAKE_COMMAND} --install . --component bundle --strip
    --prefix ${PROJECT_BINARY_DIR}/bundle
  COMMAND sh -c
    "git -C ${PROJECT_SOURCE_DIR} describe --always --dirty >bundle/COMMIT"
  # The dictionary spans the programs, which have much in common.
  COMMAND ${CMAKE_COMMAND} -E env XZ_OPT=-6\ --lzma2=preset=6,dict=192MiB
    tar --create --xz --file=rowhouse-bundle.tar.xz --owner=0 --group=0
    bundle
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
  DEPENDS ${rowhouse_bundled}
  VERBATIM)
