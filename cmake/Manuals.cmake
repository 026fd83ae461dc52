# man/NAME.N.scd -> build/man/manN/NAME.N, by scdoc, with the options of NAME's table that the page leaves out. A manual that
# scdoc refuses stops the build.
function(tessera_manuals)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.scd)
  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  find_program(SCDOC scdoc)
  if(sources AND NOT SCDOC)
    message(FATAL_ERROR "scdoc not found; run tools/setup")
  endif()
  set(script ${CMAKE_SOURCE_DIR}/cmake/manual_options.awk)
  set(pages "")
  foreach(source ${sources})
    get_filename_component(page ${source} NAME_WLE)
    string(REGEX MATCH "[1-9]$" section ${page})
    string(REGEX REPLACE "[.][1-9]$" "" name ${page})
    set(table /dev/null)
    if(section EQUAL 1 AND name IN_LIST programs)
      set(table ${CMAKE_BINARY_DIR}/completions/${name}.flags)
    endif()
    set(output ${CMAKE_BINARY_DIR}/man/man${section}/${page})
    add_custom_command(OUTPUT ${output} DEPENDS ${source} ${script} ${table}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man/man${section}
      COMMAND sh -c "awk -f \"$3\" \"$4\" \"$1\" >\"$2.scd\" && \"$0\" <\"$2.scd\" >\"$2.new\" && rm \"$2.scd\" && mv \"$2.new\" \"$2\""
        ${SCDOC} ${source} ${output} ${script} ${table} COMMENT "Manual ${page}" VERBATIM)
    list(APPEND pages ${output})
  endforeach()
  add_custom_target(manuals ALL DEPENDS ${pages})
  set_property(GLOBAL PROPERTY TESSERA_MANUALS ${pages})
endfunction()
