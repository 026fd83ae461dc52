# ccache, false warnings, and how many compilers of torch's headers may run at once.

# The precompiled header needs the sloppiness; the base directory lets two checkouts share what they compiled.
find_program(CCACHE ccache)
if(CCACHE AND TESSERA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()

# Kernels are compiled for TESSERA_ARCH, all else for x86-64-v3 wherever that is what TESSERA_ARCH has at least: a second
# build for other kernels then compiles only those. "portable": kernels for x86-64-v3 and, in libraries that the loader
# takes instead where the processor has AVX-512, for x86-64-v4 (cmake/Rooms.cmake). On a lesser processor the loader ends a
# program with a line that says so.
set(TESSERA_KERNEL_ARCHS "")
set(TESSERA_KERNEL_MARCH ${TESSERA_ARCH})
set(base_arch "${TESSERA_ARCH}")
if(TESSERA_ARCH STREQUAL "portable")
  set(TESSERA_KERNEL_ARCHS x86-64-v3 x86-64-v4)
  set(TESSERA_KERNEL_MARCH "")
  set(base_arch x86-64-v3)
  add_link_options(-Wl,-z,x86-64-v3)
elseif(TESSERA_ARCH)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=${TESSERA_ARCH} -dM -E -x c++ /dev/null
    OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__BMI2__" AND macros MATCHES "__LZCNT__")
    set(base_arch x86-64-v3)
  endif()
endif()
set(TESSERA_BASE_ARCH "${base_arch}" CACHE STRING "-march of all that is no kernel")

# tessera_empty_source(VARIABLE NAME): generated/NAME.cpp, for a library that is made of others; written once, or a configure
# run would have everything linked again.
function(tessera_empty_source variable name)
  set(source ${CMAKE_BINARY_DIR}/generated/${name}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  set(${variable} ${source} PARENT_SCOPE)
endfunction()

# False warnings of gcc 12 and 13 about inlined library templates (fmt, std::string), which depend on -march.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-ftree-vectorize -fvect-cost-model=dynamic)
  add_compile_options(-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
endif()

# A file that includes torch takes up to 1.5 GB of memory while it compiles.
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR torch_jobs "${memory_mib} / 1536")
if(torch_jobs LESS 1)
  set(torch_jobs 1)
endif()
set_property(GLOBAL PROPERTY JOB_POOLS torch=${torch_jobs})
