# Programs, manuals and completions, each under TESSERA_PROGRAM_PREFIX + its name.
#
# A LibTorch of this checkout's .deps is copied to lib/tessera/, where the programs look first, so that what is installed
# does not need the checkout; any other LibTorch stays where it is.
include(GNUInstallDirs)
set(TESSERA_PROGRAM_PREFIX "" CACHE STRING "Put before the names of installed programs, manuals and completions")

function(tessera_install)
  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  get_property(pages GLOBAL PROPERTY TESSERA_MANUALS)
  foreach(PROGRAM ${programs})
    set(NAME ${TESSERA_PROGRAM_PREFIX}${PROGRAM})
    install(PROGRAMS $<TARGET_FILE:${PROGRAM}> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ${NAME})
    string(MAKE_C_IDENTIFIER "${NAME}" IDENTIFIER)
    foreach(shell bash zsh)
      configure_file(${CMAKE_SOURCE_DIR}/cmake/completion.${shell}.in ${CMAKE_BINARY_DIR}/completions/${NAME}.${shell} @ONLY)
    endforeach()
    install(FILES ${CMAKE_BINARY_DIR}/completions/${NAME}.bash
      DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${NAME})
    install(FILES ${CMAKE_BINARY_DIR}/completions/${NAME}.zsh
      DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _${NAME})
  endforeach()
  foreach(page ${pages})
    get_filename_component(name ${page} NAME)
    string(REGEX MATCH "[1-9]$" section ${name})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} RENAME ${TESSERA_PROGRAM_PREFIX}${name})
  endforeach()
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/man/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)

  cmake_path(IS_PREFIX CMAKE_SOURCE_DIR ${TORCH_ROOT} NORMALIZE torch_is_ours)
  if(torch_is_ours)
    file(GLOB cuda_libraries ${TORCH_ROOT}/../nvidia/*/lib/libcud*.so.* ${TORCH_ROOT}/../nvidia/*/lib/libcupti.so.*)
    install(FILES ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so ${TORCH_OPENMP} ${cuda_libraries}
      DESTINATION lib/tessera)
  endif()
endfunction()
