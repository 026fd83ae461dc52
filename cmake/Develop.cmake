# What other programs need to use the rooms: headers in include/tessera, static libraries in lib/tessera, and
# find_package(tessera) and pkg-config beside them. Only of rooms that need neither LibTorch nor FAISS: shards, tokenizers,
# chat templates, tasks' generators, indices of passages and n-grams. examples/embed uses them.
option(TESSERA_DEVELOP "Install headers, static libraries, a CMake package and a pkg-config file" ON)

function(tessera_develop)
  if(NOT TESSERA_DEVELOP OR TESSERA_SANITIZE OR TESSERA_FUZZ)
    return()
  endif()
  set(rooms core shard text task page passages ngrams)
  set(libraries build_info ${rooms})
  list(TRANSFORM libraries PREPEND tessera_)
  install(TARGETS ${libraries} ARCHIVE DESTINATION lib/tessera)
  foreach(room ${rooms})
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/lib/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera FILES_MATCHING PATTERN "*.h")
  endforeach()
  include(CMakePackageConfigHelpers)
  set(folder ${CMAKE_BINARY_DIR}/generated/develop)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tesseraConfig.cmake.in ${folder}/tesseraConfig.cmake
    INSTALL_DESTINATION lib/cmake/tessera PATH_VARS CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${folder}/tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/tessera.pc.in ${folder}/tessera.pc @ONLY)
  install(FILES ${folder}/tesseraConfig.cmake ${folder}/tesseraConfigVersion.cmake DESTINATION lib/cmake/tessera)
  install(FILES ${folder}/tessera.pc DESTINATION lib/pkgconfig)
endfunction()
