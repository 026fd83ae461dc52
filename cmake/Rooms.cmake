# Rooms, programs and tests by convention; see CMakeLists.txt.

# One precompiled lib/nn/torch.h (20 s) for every target that links torch. They all compile with the same flags, the
# defaults, or the compiler would refuse it.
file(WRITE ${CMAKE_BINARY_DIR}/generated/torch_pch.cpp.new "")
file(COPY_FILE ${CMAKE_BINARY_DIR}/generated/torch_pch.cpp.new ${CMAKE_BINARY_DIR}/generated/torch_pch.cpp ONLY_IF_DIFFERENT)
add_library(torch_pch STATIC ${CMAKE_BINARY_DIR}/generated/torch_pch.cpp)
target_link_libraries(torch_pch PUBLIC dep::torch dep::fmt)
target_precompile_headers(torch_pch PRIVATE ${CMAKE_SOURCE_DIR}/lib/nn/torch.h)

# tessera_torch_target(TARGET): with the precompiled header, and no more such compilers at once than memory allows.
function(tessera_torch_target target)
  target_precompile_headers(${target} REUSE_FROM torch_pch)
  set_target_properties(${target} PROPERTIES JOB_POOL_COMPILE torch)
endfunction()
set_target_properties(torch_pch PROPERTIES JOB_POOL_COMPILE torch)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(dep_torch INTERFACE -fpch-preprocess -Winvalid-pch)  # the first is for ccache
endif()

# tessera_room(NAME [TORCH] DEPENDS target...): lib/NAME/*.cpp as the static library tessera_NAME.
# A room without sources yet is an interface library, so that the graph is always complete.
function(tessera_room name)
  cmake_parse_arguments(ROOM "TORCH" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/${name}/*.cpp)
  if(sources)
    add_library(tessera_${name} STATIC ${sources})
    set(scope PUBLIC)
    # Loops over raw floats: no torch in them, and sums may be taken in any order so that they vectorise.
    file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/${name}/*_kernels.cpp)
    set_source_files_properties(${kernels} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
      "-fopenmp-simd;-fno-math-errno;-fno-trapping-math;-fno-signed-zeros;-fassociative-math")
  else()
    add_library(tessera_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tessera_${name} ${scope} ${CMAKE_SOURCE_DIR}/lib)
  if(ROOM_TORCH)
    target_link_libraries(tessera_${name} ${scope} dep::torch)
    if(sources)
      tessera_torch_target(tessera_${name})
    endif()
    set_property(GLOBAL APPEND PROPERTY TESSERA_TORCH_ROOMS ${name})
  endif()
  target_link_libraries(tessera_${name} ${scope} ${ROOM_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${name})
endfunction()

# cmd/NAME.cpp as the program build/bin/NAME, underscores as hyphens. Torch's link options come first on the link line.
function(tessera_programs)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmd/*.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "_" "-" name ${name})
    add_executable(${name} ${source})
    if(name IN_LIST TORCH_PROGRAMS)
      target_link_libraries(${name} PRIVATE tessera_cli tessera_train tessera_task)
      tessera_torch_target(${name})
    else()
      target_link_libraries(${name} PRIVATE tessera_cli tessera_text tessera_task)
    endif()
    set_property(GLOBAL APPEND PROPERTY TESSERA_PROGRAMS ${name})
  endforeach()
endfunction()
