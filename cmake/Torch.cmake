# LibTorch as dep::torch: libtorch_cpu and c10 with torch's own OpenMP first. Also: TORCH_ROOT, TORCH_VERSION, TORCH_OPENMP.
#
# Search order: CMAKE_PREFIX_PATH, $LIBTORCH, python3's torch, .deps/torch (filled by tools/setup). TorchConfig.cmake is not
# used: with a CUDA build it fails without a CUDA toolkit, and this project needs only the CPU part of such a build.
# libtorch.so is never linked, because it wants libtorch_cuda.so.
#
# The first library that exports sgemm_ provides it to the whole process. lib/nn/product/sgemm.h exports it and forwards to
# the next library. So torch precedes FAISS and OpenBLAS on every link line, and --no-as-needed keeps it (tests/link
# checks this).
# Torch bundles its own fmt: -idirafter keeps the system's fmt first.

set(torch_header include/torch/csrc/api/include/torch/torch.h)
string(REPLACE ":" ";" torch_hints "$ENV{CMAKE_PREFIX_PATH}")
find_path(TORCH_ROOT ${torch_header} HINTS ${CMAKE_PREFIX_PATH} ${torch_hints} $ENV{LIBTORCH}
  PATH_SUFFIXES torch libtorch ../.. NO_DEFAULT_PATH)
if(NOT TORCH_ROOT)
  execute_process(COMMAND python3 -c "import importlib.util as u
s = u.find_spec('torch')
print((s.submodule_search_locations or [''])[0] if s else '')"
    OUTPUT_VARIABLE python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(TORCH_ROOT ${torch_header} HINTS ${python_torch} ${CMAKE_SOURCE_DIR}/.deps/torch NO_DEFAULT_PATH)
endif()
if(NOT TORCH_ROOT)
  message(FATAL_ERROR "LibTorch not found; run tools/setup, or give -DCMAKE_PREFIX_PATH=DIR or LIBTORCH=DIR")
endif()

set(TORCH_VERSION "")
foreach(file include/torch/headeronly/version.h include/torch/csrc/api/include/torch/version.h)
  if(NOT TORCH_VERSION AND EXISTS ${TORCH_ROOT}/${file})
    file(STRINGS ${TORCH_ROOT}/${file} lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
    list(JOIN numbers . TORCH_VERSION)
  endif()
endforeach()
if(TORCH_VERSION VERSION_LESS 2.8)
  message(FATAL_ERROR "LibTorch ${TORCH_VERSION} in ${TORCH_ROOT} is too old: 2.8 or newer is needed; LIBTORCH=DIR chooses another")
endif()
message(STATUS "LibTorch ${TORCH_VERSION}: ${TORCH_ROOT}")

# lib/ of an unpacked or installed LibTorch; torch.libs/ of some wheels.
file(GLOB TORCH_OPENMP ${TORCH_ROOT}/lib/libgomp*.so* ${TORCH_ROOT}/../torch.libs/libgomp*.so*)
if(NOT TORCH_OPENMP)
  message(FATAL_ERROR "no libgomp beside LibTorch in ${TORCH_ROOT}")
endif()
list(GET TORCH_OPENMP 0 TORCH_OPENMP)
get_filename_component(openmp_dir ${TORCH_OPENMP} DIRECTORY)

foreach(name c10 torch_cpu)
  add_library(libtorch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(libtorch::${name} PROPERTIES IMPORTED_LOCATION ${TORCH_ROOT}/lib/lib${name}.so)
endforeach()

# -fopenmp when compiling only: at::parallel_for is a plain loop without it, and linking with it would add a second OpenMP.
# Code that clang compiles needs another OpenMP runtime than torch's libgomp, so its loops stay serial (fuzzing).
add_library(dep_torch INTERFACE)
target_compile_options(dep_torch INTERFACE $<IF:$<CXX_COMPILER_ID:Clang>,-fopenmp-simd,-fopenmp> "SHELL:-idirafter ${TORCH_ROOT}/include"
  "SHELL:-idirafter ${TORCH_ROOT}/include/torch/csrc/api/include")
target_link_options(dep_torch INTERFACE -Wl,--no-as-needed ${TORCH_ROOT}/lib/libtorch_cpu.so ${TORCH_ROOT}/lib/libc10.so
  ${TORCH_OPENMP} -Wl,-rpath-link,${openmp_dir})
target_link_libraries(dep_torch INTERFACE libtorch::torch_cpu libtorch::c10)
add_library(dep::torch ALIAS dep_torch)

# Programs search their own folder and ../lib/tessera first (make install may copy LibTorch there), then TORCH_ROOT.
set(CMAKE_BUILD_RPATH $ORIGIN $ORIGIN/../lib/tessera ${TORCH_ROOT}/lib ${openmp_dir})
list(REMOVE_DUPLICATES CMAKE_BUILD_RPATH)
