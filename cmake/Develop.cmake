# What other programs need to use Tessera: the headers of lib/tessera in include/tessera, and find_package(tessera) and
# pkg-config, which link libtessera.so. The headers need nothing but the C++ library. examples/embed uses them.
option(TESSERA_DEVELOP "Install headers, a CMake package and a pkg-config file" ON)

function(tessera_develop)
  if(NOT TESSERA_DEVELOP OR TESSERA_SANITIZE OR TESSERA_FUZZ)
    return()
  endif()
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/lib/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN inside.h EXCLUDE)
  include(CMakePackageConfigHelpers)
  set(folder ${CMAKE_BINARY_DIR}/generated/develop)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tesseraConfig.cmake.in ${folder}/tesseraConfig.cmake
    INSTALL_DESTINATION lib/cmake/tessera PATH_VARS CMAKE_INSTALL_INCLUDEDIR NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${folder}/tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/tessera.pc.in ${folder}/tessera.pc @ONLY)
  install(FILES ${folder}/tesseraConfig.cmake ${folder}/tesseraConfigVersion.cmake DESTINATION lib/cmake/tessera)
  install(FILES ${folder}/tessera.pc DESTINATION lib/pkgconfig)
endfunction()
