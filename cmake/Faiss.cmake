# FAISS and the LAPACK symbols that LibTorch lacks, as dep::faiss; always after torch on the link line.
#
# The AVX2 build is taken where there is one (four to six times as fast as Debian's, see tools/build-faiss). OpenBLAS is
# the OpenMP build and static, so that only the LAPACK routines that torch lacks are taken from it. Its OpenMP, and
# FAISS's, is torch's libgomp where torch is linked, else the compiler's: hence --as-needed.
set(faiss_hints ${faiss_ROOT} $ENV{faiss_ROOT} ${CMAKE_SOURCE_DIR}/.deps/faiss)
find_path(FAISS_INCLUDE faiss/Index.h HINTS ${faiss_hints} PATH_SUFFIXES include)
find_library(FAISS_LIBRARY NAMES libfaiss_avx2.a libfaiss.a NAMES_PER_DIR HINTS ${faiss_hints} PATH_SUFFIXES lib)
file(GLOB openblas_dirs /usr/lib/*/openblas-openmp)
find_library(OPENBLAS_LIBRARY NAMES libopenblas.a HINTS ${openblas_dirs} PATH_SUFFIXES openblas-openmp)
foreach(variable FAISS_INCLUDE FAISS_LIBRARY OPENBLAS_LIBRARY)
  if(NOT ${variable})
    message(FATAL_ERROR "${variable} not found; run tools/setup, or give -Dfaiss_ROOT=DIR or -D${variable}=FILE")
  endif()
endforeach()

file(STRINGS ${FAISS_INCLUDE}/faiss/Index.h lines REGEX "#define FAISS_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
list(JOIN numbers . FAISS_VERSION)
message(STATUS "FAISS ${FAISS_VERSION}: ${FAISS_LIBRARY}")

add_library(dep_faiss INTERFACE)
target_include_directories(dep_faiss SYSTEM INTERFACE ${FAISS_INCLUDE})
target_link_libraries(dep_faiss INTERFACE ${FAISS_LIBRARY} ${OPENBLAS_LIBRARY} -Wl,--push-state,--as-needed
  -l:libgfortran.so.5 -lgomp -Wl,--pop-state Threads::Threads)
add_library(dep::faiss ALIAS dep_faiss)
