# FAISS and the LAPACK symbols that LibTorch lacks, as dep::faiss; always after torch on the link line.
#
# The AVX2 build is taken where there is one and the programs are for such processors (four to six times as fast as
# Debian's, see tools/build-faiss). OpenBLAS is the OpenMP build and static, so that only the LAPACK routines that torch
# lacks are taken from it. Its OpenMP, and FAISS's, is torch's libgomp where torch is linked, else the compiler's: hence
# --as-needed. Both are one shared library, libtessera_faiss.so, which programs link after torch.
# Without FAISS dep::faiss is empty and FAISS_VERSION is "none".
set(faiss_hints ${faiss_ROOT} $ENV{faiss_ROOT} ${CMAKE_SOURCE_DIR}/.deps/faiss)
find_path(FAISS_INCLUDE faiss/Index.h HINTS ${faiss_hints} PATH_SUFFIXES include)
set(faiss_names libfaiss.a)
if(TESSERA_BASE_ARCH STREQUAL x86-64-v3)
  set(faiss_names libfaiss_avx2.a libfaiss.a)
endif()
find_library(FAISS_LIBRARY NAMES ${faiss_names} NAMES_PER_DIR HINTS ${faiss_hints} PATH_SUFFIXES lib)
file(GLOB openblas_dirs /usr/lib/*/openblas-openmp)
find_library(OPENBLAS_LIBRARY NAMES libopenblas.a HINTS ${openblas_dirs} PATH_SUFFIXES openblas-openmp)
set(FAISS_VERSION none)
add_library(dep_faiss INTERFACE)
add_library(dep::faiss ALIAS dep_faiss)
if(NOT FAISS_INCLUDE OR NOT FAISS_LIBRARY OR NOT OPENBLAS_LIBRARY)
  message(STATUS "FAISS: not found, built without; -Dfaiss_ROOT=DIR names one")
  return()
endif()

file(STRINGS ${FAISS_INCLUDE}/faiss/Index.h lines REGEX "#define FAISS_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
list(JOIN numbers . FAISS_VERSION)
get_filename_component(faiss_name ${FAISS_LIBRARY} NAME)
string(APPEND FAISS_VERSION " (${faiss_name})")
message(STATUS "FAISS ${FAISS_VERSION}: ${FAISS_LIBRARY}")

target_include_directories(dep_faiss SYSTEM INTERFACE ${FAISS_INCLUDE})
target_compile_definitions(dep_faiss INTERFACE TESSERA_FAISS)
set(faiss_tail ${OPENBLAS_LIBRARY} -Wl,--push-state,--as-needed -l:libgfortran.so.5 -lgomp -Wl,--pop-state Threads::Threads)
tessera_empty_source(faiss_source faiss)
add_library(tessera_faiss SHARED ${faiss_source})
set_target_properties(tessera_faiss PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tessera INSTALL_RPATH $ORIGIN)
target_link_libraries(tessera_faiss PRIVATE dep::torch -Wl,--whole-archive ${FAISS_LIBRARY} -Wl,--no-whole-archive ${faiss_tail})
install(TARGETS tessera_faiss LIBRARY DESTINATION lib/tessera)
target_link_libraries(dep_faiss INTERFACE tessera_faiss)
