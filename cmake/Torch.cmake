# LibTorch as dep::torch: libtorch_cpu and c10 with torch's own OpenMP first.
#
# Search order: -DCMAKE_PREFIX_PATH, $LIBTORCH, .deps/ (filled by tools/setup), python3's torch. TorchConfig.cmake is not used: with a
# CUDA build it stops where no toolkit is installed, and this project needs only the CPU part of such a build.
#
# Whoever exports sgemm_ first gives it to the whole process, so torch stands before FAISS and OpenBLAS on every link
# line, and --no-as-needed keeps it there. Torch bundles its own fmt: -idirafter keeps the system's fmt first.

set(torch_hints ${CMAKE_PREFIX_PATH} $ENV{LIBTORCH} ${CMAKE_SOURCE_DIR}/.deps/torch)
find_path(TORCH_ROOT include/torch/csrc/api/include/torch/torch.h HINTS ${torch_hints}
  PATH_SUFFIXES torch libtorch NO_DEFAULT_PATH)
if(NOT TORCH_ROOT)
  execute_process(COMMAND python3 -c "import importlib.util as u; s=u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(TORCH_ROOT include/torch/csrc/api/include/torch/torch.h HINTS ${python_torch} NO_DEFAULT_PATH)
endif()
if(NOT TORCH_ROOT)
  message(FATAL_ERROR "LibTorch not found; run tools/setup, or give -DCMAKE_PREFIX_PATH=DIR or LIBTORCH=DIR")
endif()

foreach(name c10 torch_cpu)
  add_library(libtorch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::${name} PROPERTIES IMPORTED_LOCATION ${TORCH_ROOT}/lib/lib${name}.so)
endforeach()
file(GLOB torch_gomp ${TORCH_ROOT}/lib/libgomp*.so.1 ${TORCH_ROOT}/lib/libgomp*.so* ${TORCH_ROOT}/../torch.libs/libgomp*.so*)
list(GET torch_gomp 0 torch_gomp)

add_library(dep_torch INTERFACE)
target_compile_options(dep_torch INTERFACE "SHELL:-idirafter ${TORCH_ROOT}/include"
  "SHELL:-idirafter ${TORCH_ROOT}/include/torch/csrc/api/include")
target_link_options(dep_torch INTERFACE -Wl,--no-as-needed ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so
  ${torch_gomp} -Wl,-rpath,${TORCH_ROOT}/lib)
target_link_libraries(dep_torch INTERFACE libtorch::torch_cpu libtorch::c10)
add_library(dep::torch ALIAS dep_torch)
message(STATUS "LibTorch: ${TORCH_ROOT}")
