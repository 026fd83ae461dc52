# examples/novels/NAME.txt.zst -> build/share/tessera/novels/NAME.txt, and from there to PREFIX/share/tessera/novels: the texts
# that the manuals' pages and the demo read. Their path relative to bin is equal in a build and in an installation.
function(tessera_novels)
  find_program(ZSTD zstd)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/novels/*.txt.zst)
  if(NOT ZSTD)
    message(FATAL_ERROR "zstd not found; run tools/setup")
  endif()
  set(folder ${CMAKE_BINARY_DIR}/share/tessera/novels)
  set(novels "")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WLE)
    add_custom_command(OUTPUT ${folder}/${name} DEPENDS ${source}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND ${ZSTD} -dqf ${source} -o ${folder}/${name} COMMENT "" VERBATIM)
    list(APPEND novels ${folder}/${name})
  endforeach()
  add_custom_target(novels ALL DEPENDS ${novels})
  install(FILES ${novels} ${CMAKE_SOURCE_DIR}/examples/novels/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/novels)
endfunction()
