# lib/nn/*.cu, compiled with the tests where nvcc is installed. The programs do not link them: the CPU part of LibTorch is
# all they use (cmake/Torch.cmake).

# tessera_cuda_kernels(): the target cuda_kernels, part of unit-tests, with the test of that name, tests/cuda/kernels_test.cu,
# which says SKIP where no GPU is.
function(tessera_cuda_kernels)
  find_program(TESSERA_NVCC nvcc HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT TESSERA_NVCC)
    return()
  endif()
  set(objects "")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/nn/*.cu)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
      COMMAND ${TESSERA_NVCC} -std=c++17 -O3 -I ${CMAKE_SOURCE_DIR}/lib -c ${source} -o ${object}
      DEPENDS ${source} ${CMAKE_SOURCE_DIR}/lib/nn/${name}.h VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  add_custom_target(cuda_kernels DEPENDS ${objects})
  add_dependencies(unit-tests cuda_kernels)
  find_path(DOCTEST_INCLUDE doctest/doctest.h)
  if(NOT DOCTEST_INCLUDE)
    return()
  endif()
  set(test ${CMAKE_BINARY_DIR}/tests/cuda_kernels)
  set(test_sources ${CMAKE_SOURCE_DIR}/tests/cuda/kernels_test.cu ${CMAKE_SOURCE_DIR}/lib/nn/leaky_kernels.cpp
    ${CMAKE_SOURCE_DIR}/lib/nn/sru_scan_kernels.cpp)
  add_custom_command(OUTPUT ${test}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/tests
    COMMAND ${TESSERA_NVCC} -std=c++20 -DDOCTEST_CONFIG_NO_SHORT_MACRO_NAMES -I ${CMAKE_SOURCE_DIR}/lib ${test_sources}
      ${objects} -o ${test}
    DEPENDS ${test_sources} ${objects} ${CMAKE_SOURCE_DIR}/lib/nn/leaky_kernels.h
      ${CMAKE_SOURCE_DIR}/lib/nn/sru_scan_kernels.h VERBATIM)
  add_custom_target(cuda_kernels_test DEPENDS ${test})
  add_dependencies(unit-tests cuda_kernels_test)
  add_test(NAME cuda_kernels COMMAND ${test})
endfunction()
