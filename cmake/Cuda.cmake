# lib/nn/kernels/*.cu and what is made of them.
#
#   everywhere        cuda_kernels_emulated: the kernels as C++, run on the CPU (tests/cuda/emulated); make check-kernels:
#                     the same under the sanitizers
#   where nvcc is     cuda_kernels: compiled for sm_80, sm_90 and, as PTX, for what comes later; their registers are printed,
#                     a kernel that spills stops the build; the test cuda_kernels runs them where a GPU is
#   TESSERA_CUDA      build/lib/tessera/libtessera_cuda.so: the plug-in that --device cuda loads (lib/nn/base/cuda.h). It
#                     needs LibTorch's CUDA part too: tools/setup cuda, make cuda. Programs link none of it.

file(GLOB cuda_wheels ${TORCH_ROOT}/../nvidia/cu1*)
find_program(TESSERA_NVCC nvcc HINTS ${cuda_wheels} ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
file(GLOB TESSERA_CU CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/kernels/*.cu)
set(TESSERA_CUDA_ARCHITECTURES -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90])

# What the plug-in needs; CUDA_VERSION, for --build-info: what it is made with and for, or "none".
set(CUDA_VERSION none)
set(cuda_absent "")
find_library(TESSERA_TORCH_CUDA torch_cuda HINTS ${TORCH_ROOT}/lib NO_DEFAULT_PATH)
if(TESSERA_NVCC)
  # nvcc may be a script that calls another one; a wheel has folders of its own.
  execute_process(COMMAND ${TESSERA_NVCC} --version OUTPUT_VARIABLE nvcc_text)
  string(REGEX MATCH "V([0-9.]+)" matched "${nvcc_text}")
  set(nvcc_version "${CMAKE_MATCH_1}")
  string(REGEX MATCH "^[0-9]+" cuda_major "${nvcc_version}")
  execute_process(COMMAND ${TESSERA_NVCC} --dryrun -x cu -c /dev/null ERROR_VARIABLE nvcc_text OUTPUT_QUIET)
  string(REGEX MATCH "TOP=([^\n]+)" matched "${nvcc_text}")
  set(cuda_top "${CMAKE_MATCH_1}")
  find_library(TESSERA_CUDART libcudart.so.${cuda_major} HINTS ${cuda_wheels} ${cuda_top}
    PATH_SUFFIXES lib lib64 targets/x86_64-linux/lib)
endif()
foreach(part TESSERA_NVCC TESSERA_TORCH_CUDA TESSERA_CUDART)
  if(NOT ${part})
    list(APPEND cuda_absent ${part})
  endif()
endforeach()
set(cuda_plugin ON)
if(cuda_absent)
  set(cuda_plugin OFF)
  if(TESSERA_CUDA AND NOT TESSERA_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "TESSERA_CUDA=ON, but not found: ${cuda_absent}; tools/setup cuda installs what is needed")
  endif()
elseif(NOT TESSERA_CUDA)
  set(cuda_plugin OFF)
endif()
if(cuda_plugin)
  set(CUDA_VERSION "${nvcc_version}, sm_80, sm_90, PTX")
  message(STATUS "CUDA ${CUDA_VERSION}: ${TESSERA_NVCC}")
endif()

# What tests of kernels are made of: their cases, and the CPU's twins of the kernels.
file(GLOB cuda_case_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cuda/*_cases.cpp)
list(APPEND cuda_case_sources ${CMAKE_SOURCE_DIR}/tests/cuda/kernels_test.cpp)
set(cuda_twins "")
foreach(source ${TESSERA_CU})
  string(REGEX REPLACE "\\.cu$" ".cpp" twin ${source})
  if(EXISTS ${twin})
    list(APPEND cuda_twins ${twin})
  endif()
endforeach()

# tessera_emulated_kernels(NAME [OPTION...]): the kernels as C++, in the test NAME, compiled and linked with OPTION. The
# cases run no kernel's code of their own, and are compiled once, without OPTION.
function(tessera_emulated_kernels name)
  set(folder ${CMAKE_SOURCE_DIR}/tests/cuda)
  add_executable(${name} EXCLUDE_FROM_ALL ${cuda_twins} ${folder}/emulated_test.cpp ${TESSERA_CU})
  set_source_files_properties(${TESSERA_CU} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  target_include_directories(${name} PRIVATE ${folder}/emulated ${CMAKE_SOURCE_DIR}/lib)
  target_compile_options(${name} PRIVATE ${ARGN})
  # Its threads are no threads of the system: what the sanitizers know of them it tells them itself.
  add_library(${name}_threads OBJECT EXCLUDE_FROM_ALL ${folder}/emulated/emulated.cpp)
  target_include_directories(${name}_threads PRIVATE ${folder}/emulated)
  if("-fsanitize=thread" IN_LIST ARGN)
    target_compile_definitions(${name}_threads PRIVATE EMULATED_TSAN)
  endif()
  target_link_libraries(${name} PRIVATE ${name}_threads cuda_cases)
  target_link_options(${name} PRIVATE ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# The kernels as C++, for unit tests of what starts them: emulated_kernels.
function(tessera_emulated_library)
  set(folder ${CMAKE_SOURCE_DIR}/tests/cuda/emulated)
  add_library(emulated_kernels STATIC EXCLUDE_FROM_ALL ${TESSERA_CU} ${folder}/emulated.cpp)
  target_include_directories(emulated_kernels PRIVATE ${folder} ${CMAKE_SOURCE_DIR}/lib)
  set_source_files_properties(${TESSERA_CU} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
endfunction()
tessera_emulated_library()

function(tessera_emulated_tests)
  add_library(cuda_cases OBJECT EXCLUDE_FROM_ALL ${cuda_case_sources})
  target_include_directories(cuda_cases PRIVATE ${CMAKE_SOURCE_DIR}/tests/cuda/emulated ${CMAKE_SOURCE_DIR}/lib)
  tessera_emulated_kernels(cuda_kernels_emulated)
  add_dependencies(unit-tests cuda_kernels_emulated)
  add_test(NAME cuda_kernels_emulated COMMAND cuda_kernels_emulated)
  tessera_emulated_kernels(cuda_kernels_asan -fsanitize=address,undefined -fno-sanitize-recover=undefined -g1)
  tessera_emulated_kernels(cuda_kernels_tsan -fsanitize=thread -g1)
  add_custom_target(sanitized-kernels DEPENDS cuda_kernels_asan cuda_kernels_tsan)
endfunction()

# The test cuda_kernels, of OBJECT..., which nvcc made.
function(tessera_device_test)
  set(test ${CMAKE_BINARY_DIR}/tests/cuda_kernels)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/kernels/*.h ${CMAKE_SOURCE_DIR}/tests/cuda/*.h)
  add_custom_command(OUTPUT ${test}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/tests
    COMMAND ${TESSERA_NVCC} -std=c++20 -O1 -DDOCTEST_CONFIG_NO_SHORT_MACRO_NAMES -Xcompiler=-fopenmp-simd
      -I${CMAKE_SOURCE_DIR}/lib -L${cuda_top}/lib ${cuda_case_sources} ${cuda_twins} ${ARGN} -o ${test}
    DEPENDS ${cuda_case_sources} ${cuda_twins} ${ARGN} ${headers} VERBATIM)
  add_custom_target(cuda_kernels_test DEPENDS ${test})
  add_dependencies(unit-tests cuda_kernels_test)
  add_dependencies(kernel-tests cuda_kernels_test)
  add_test(NAME cuda_kernels COMMAND ${test})
  set_tests_properties(cuda_kernels PROPERTIES LABELS kernels)
endfunction()

# The plug-in, of OBJECT....
function(tessera_plugin)
  add_library(tessera_cuda SHARED ${CMAKE_SOURCE_DIR}/lib/nn/base/cuda_plugin.cpp ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_compile_definitions(tessera_cuda PRIVATE TESSERA_VERSION="${PROJECT_VERSION}")
  target_include_directories(tessera_cuda PRIVATE ${CMAKE_SOURCE_DIR}/lib)
  target_compile_options(tessera_cuda PRIVATE -fvisibility=hidden "SHELL:-idirafter ${TORCH_ROOT}/include"
    "SHELL:-idirafter ${cuda_top}/include")
  target_link_libraries(tessera_cuda PRIVATE ${TESSERA_TORCH_CUDA} ${TORCH_ROOT}/lib/libc10_cuda.so libtorch::torch_cpu
    libtorch::c10 ${TESSERA_CUDART})
  # Where programs look: cmake/Torch.cmake.
  set_target_properties(tessera_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tessera
    JOB_POOL_COMPILE torch)
  install(TARGETS tessera_cuda LIBRARY DESTINATION lib/tessera)
endfunction()

function(tessera_cuda)
  find_path(DOCTEST_INCLUDE doctest/doctest.h)
  if(DOCTEST_INCLUDE)
    tessera_emulated_tests()
  endif()
  if(NOT TESSERA_NVCC)
    add_test(NAME cuda_kernels COMMAND ${CMAKE_COMMAND} -E echo
      "MESSAGE: SKIP no nvcc here: CUDA kernels were not compiled for a GPU, and run emulated only")
    return()
  endif()
  set(objects "")
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/kernels/*.h)
  foreach(source ${TESSERA_CU})
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -DLOG=${CMAKE_BINARY_DIR}/cuda/${name}.log -P ${CMAKE_SOURCE_DIR}/cmake/nvcc.cmake --
        ${TESSERA_NVCC} -std=c++20 -O3 ${TESSERA_CUDA_ARCHITECTURES} -Xcompiler=-fPIC -Xptxas=-v -I${CMAKE_SOURCE_DIR}/lib
        -c ${source} -o ${object}
      DEPENDS ${source} ${headers} ${CMAKE_SOURCE_DIR}/cmake/nvcc.cmake COMMENT "nvcc ${name}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(cuda_kernels DEPENDS ${objects})
  add_dependencies(unit-tests cuda_kernels)
  if(DOCTEST_INCLUDE)
    tessera_device_test(${objects})
  endif()
  if(cuda_plugin)
    tessera_plugin(${objects})
    add_dependencies(tessera_cuda cuda_kernels)
  endif()
endfunction()
