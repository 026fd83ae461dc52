# Defines where make install, make dist and make deb put files, below the prefix:
#
#   bin/tessera                 runs the programs
#   libexec/tessera/NAME        the programs; bin/PREFIXNAME leads to each, with TESSERA_LINKS
#   lib/tessera/                libtessera.so, LibTorch, FAISS, kernels of a portable build, the plug-in for GPUs
#   share/                      manuals, completions, schemas, novels, the demo, licence; with PREFIX before manuals' and
#                               completions' names
#   include/tessera, lib/cmake, lib/pkgconfig   for other programs, cmake/Develop.cmake
#
# Programs search for libraries in lib/tessera, relative to their own folder. A LibTorch of this checkout's .deps is copied
# there, so that an installation does not need the checkout; with TESSERA_RELOCATABLE any LibTorch is copied. Otherwise
# programs use LibTorch at its present path.
include(GNUInstallDirs)
set(TESSERA_PROGRAM_PREFIX "" CACHE STRING "Put before the names of installed programs, manuals and completions")
option(TESSERA_LINKS "Install a link in bin for each program" ON)
option(TESSERA_RELOCATABLE "Install LibTorch too; programs look for libraries nowhere but from where they stand" OFF)

# build/completions: NAME.flags, a program's own table, and of it PREFIXNAME.bash, .zsh and .fish.
function(tessera_completions)
  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  set(folder ${CMAKE_BINARY_DIR}/completions)
  set(script ${CMAKE_SOURCE_DIR}/cmake/completions.awk)
  file(MAKE_DIRECTORY ${folder})
  set(tables "")
  set(outputs "")
  foreach(program ${programs})
    set(table ${folder}/${program}.flags)
    add_custom_command(OUTPUT ${table} DEPENDS ${program}
      COMMAND sh -c "\"$0\" --print-flags >\"$1.new\" && mv \"$1.new\" \"$1\"" $<TARGET_FILE:${program}> ${table}
      COMMENT "Flags of ${program}" VERBATIM)
    list(APPEND tables ${table})
  endforeach()
  foreach(program ${programs})
    set(name ${TESSERA_PROGRAM_PREFIX}${program})
    set(what ${folder}/${program}.flags)
    set(variable prefix=${TESSERA_PROGRAM_PREFIX})
    if(program STREQUAL tessera)
      set(name tessera)
      set(what ${tables})
      set(variable whole=tessera)
    endif()
    foreach(shell bash zsh fish)
      set(output ${folder}/${name}.${shell})
      add_custom_command(OUTPUT ${output} DEPENDS ${what} ${script}
        COMMAND sh -c "out=$0 && awk \"$@\" >\"$out.new\" && mv \"$out.new\" \"$out\"" ${output}
          -v shell=${shell} -v ${variable} -f ${script} ${what}
        COMMENT "" VERBATIM)
      list(APPEND outputs ${output})
    endforeach()
    install(FILES ${folder}/${name}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${name})
    install(FILES ${folder}/${name}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _${name})
    install(FILES ${folder}/${name}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endforeach()
  set(all ALL)
  if(TESSERA_SANITIZE OR TESSERA_FUZZ)  # which nobody installs
    set(all "")
  endif()
  add_custom_target(completions ${all} DEPENDS ${outputs})
endfunction()

function(tessera_install)
  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  get_property(pages GLOBAL PROPERTY TESSERA_MANUALS)
  cmake_path(IS_PREFIX CMAKE_SOURCE_DIR ${TORCH_ROOT} NORMALIZE torch_is_ours)
  set(elsewhere "")
  if(NOT torch_is_ours AND NOT TESSERA_RELOCATABLE)
    get_filename_component(openmp_dir ${TORCH_OPENMP} DIRECTORY)
    set(elsewhere ${TORCH_ROOT}/lib ${openmp_dir})
  endif()
  foreach(program ${programs})
    set(name ${TESSERA_PROGRAM_PREFIX}${program})
    if(program STREQUAL tessera)
      set(folder ${CMAKE_INSTALL_BINDIR})
    else()
      set(folder libexec/tessera)
      if(TESSERA_LINKS)
        install(CODE "
          set(bin \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
          file(MAKE_DIRECTORY \"\${bin}\")
          file(CREATE_LINK ../libexec/tessera/${program} \"\${bin}/${name}\" SYMBOLIC)")
      endif()
    endif()
    set_target_properties(${program} PROPERTIES
      INSTALL_RPATH "$ORIGIN/../lib/tessera;$ORIGIN/../../lib/tessera")
    install(TARGETS ${program} RUNTIME DESTINATION ${folder})
  endforeach()
  set_target_properties(tessera_library PROPERTIES INSTALL_RPATH "$ORIGIN;${elsewhere}")
  install(TARGETS tessera_library LIBRARY DESTINATION lib/tessera)
  tessera_completions()
  foreach(page ${pages})
    get_filename_component(name ${page} NAME)
    string(REGEX MATCH "[1-9]$" section ${name})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} RENAME ${TESSERA_PROGRAM_PREFIX}${name})
  endforeach()
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/man/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)
  install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/demo DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera/demo)
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  # Of what is linked in: tools/dist gathers them.
  install(DIRECTORY ${CMAKE_BINARY_DIR}/licences DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)

  if(NOT elsewhere)
    file(GLOB cuda_libraries ${TORCH_ROOT}/../nvidia/*/lib/libcud*.so.* ${TORCH_ROOT}/../nvidia/*/lib/libcupti.so.*
      ${TORCH_ROOT}/lib/libcupti.so.*)
    install(FILES ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so ${TORCH_OPENMP} ${cuda_libraries}
      DESTINATION lib/tessera)
  endif()
endfunction()
