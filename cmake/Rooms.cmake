# Rooms, programs and tests by convention; see CMakeLists.txt.

# tessera_pch(NAME LIBRARIES target... HEADERS header... [OPTIONS flag...]): an empty library whose precompiled header other
# targets reuse. All of them compile with its flags, or the compiler refuses the header.
function(tessera_pch name)
  cmake_parse_arguments(PCH "" "" "LIBRARIES;HEADERS;OPTIONS" ${ARGN})
  tessera_empty_source(source ${name})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PUBLIC ${PCH_LIBRARIES})
  target_compile_options(${name} PRIVATE ${PCH_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${PCH_HEADERS})
endfunction()

# The headers that take most of a file's time: LibTorch's 20 s, all others together 3 s.
set(TESSERA_PLAIN_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <filesystem> <functional> <map> <memory>
  <mutex> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map> <variant> <vector>
  <fmt/format.h> <nlohmann/json.hpp>)
set(TESSERA_TORCH_HEADERS ${CMAKE_SOURCE_DIR}/lib/nn/base/torch.h ${TESSERA_PLAIN_HEADERS})
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-fpch-preprocess -Winvalid-pch)  # the first is for ccache
endif()
tessera_pch(plain_pch LIBRARIES dep::fmt dep::json HEADERS ${TESSERA_PLAIN_HEADERS})
tessera_pch(torch_pch LIBRARIES dep::torch dep::fmt dep::json HEADERS ${TESSERA_TORCH_HEADERS})
set_target_properties(torch_pch PROPERTIES JOB_POOL_COMPILE torch)

# tessera_executable(NAME ...): add_executable() whose code is that of libraries: a precompiled header is not taken for -fpie
# and -fPIC alike.
function(tessera_executable name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
endfunction()

# tessera_torch_target(TARGET [PCH]): with that precompiled header, and no more such compilers at once than memory allows.
function(tessera_torch_target target)
  if(ARGC GREATER 1)
    set(pch ${ARGV1})
  else()
    set(pch torch_pch)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
  set_target_properties(${target} PROPERTIES JOB_POOL_COMPILE torch)
endfunction()

# tessera_unity(TARGET SOURCE...): with TESSERA_UNITY the files of each folder are compiled as one, since most of a file's
# time goes to the headers that its neighbours include too; those of a large folder as several, of 150,000 bytes or fewer, since
# the longest unit decides how long a build with many compilers takes. Kernels stay alone: they have flags of their own.
function(tessera_unity target)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # what gcc says of any .cpp that is included
  list(FILTER ARGN EXCLUDE REGEX "_kernels\\.cpp$")
  foreach(pass sum group)
    foreach(source ${ARGN})
      get_filename_component(folder ${source} DIRECTORY)
      get_filename_component(folder ${folder} NAME)
      file(SIZE ${source} bytes)
      math(EXPR ${pass}_${folder} "0${${pass}_${folder}} + ${bytes}")
      if(pass STREQUAL "group")
        # Units of a folder are about equal.
        math(EXPR unit "(${group_${folder}} - 1) * (${sum_${folder}} / 150000 + 1) / ${sum_${folder}}")
        string(REPLACE "_0" "" unit ${folder}_${unit})
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${unit})
      endif()
    endforeach()
  endforeach()
endfunction()

# tessera_batches(TARGET MOST): with TESSERA_UNITY, up to MOST files of the target are compiled as one, all units about
# equal: a unit with torch's precompiled header takes 5 s for the templates that wait in it, before its own code.
function(tessera_batches target most)
  if(NOT TESSERA_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources files)
  math(EXPR units "(${files} + ${most} - 1) / ${most}")
  math(EXPR batch "(${files} + ${units} - 1) / ${units}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()

# tessera_kernels(NAME [TORCH] SOURCE...): a room's kernels as libtessera_NAME_kernels.so, once for each of
# TESSERA_KERNEL_ARCHS. The room is linked to the first. The others are in glibc-hwcaps/ARCH beside it, which the C
# library's loader searches first (from 2.33 on; older loaders use the first). So no code selects a library, and code that is
# inlined into a kernel stays within its library.
function(tessera_kernels name)
  cmake_parse_arguments(KERNELS "TORCH" "" "" ${ARGN})
  set(first tessera_${name}_kernels)
  foreach(arch ${TESSERA_KERNEL_ARCHS})
    set(library ${first}_${arch})
    set(folder lib/tessera/glibc-hwcaps/${arch})
    if(arch STREQUAL TESSERA_BASE_ARCH)
      set(library ${first})
      set(folder lib/tessera)
    endif()
    add_library(${library} SHARED ${KERNELS_UNPARSED_ARGUMENTS})
    set_target_properties(${library} PROPERTIES OUTPUT_NAME ${first} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder}
      INSTALL_RPATH $ORIGIN)
    target_compile_options(${library} PRIVATE -march=${arch})
    target_include_directories(${library} PRIVATE ${CMAKE_SOURCE_DIR}/lib)
    target_link_libraries(${library} PRIVATE $<$<BOOL:${KERNELS_TORCH}>:dep::torch> dep::fmt)
    install(TARGETS ${library} LIBRARY DESTINATION ${folder})
    add_dependencies(tessera_${name} ${library})
  endforeach()
  target_link_libraries(tessera_${name} PUBLIC ${first})
endfunction()

# tessera_room(NAME [TORCH] DEPENDS target...): lib/NAME/*.cpp and those of its sub-rooms, lib/NAME/*/*.cpp, as the static
# library tessera_NAME.
function(tessera_room name)
  cmake_parse_arguments(ROOM "TORCH" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/${name}/*.cpp ${CMAKE_SOURCE_DIR}/lib/${name}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_plugin\\.cpp$")  # cmake/Cuda.cmake, cmake/Parquet.cmake
  if(NOT TESSERA_SGEMM)
    list(FILTER sources EXCLUDE REGEX "/lib/nn/product/")
  endif()
  # Loops over raw floats: no torch in them, and sums may be taken in any order so that they vectorise.
  # -Wno-psabi: vectors wider than the processor has are passed only within a file. -Wno-pass-failed: clang says of a loop that
  # it does not vectorise; gcc is silent.
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "_kernels\\.cpp$")
  if(TESSERA_KERNEL_ARCHS)
    list(FILTER sources EXCLUDE REGEX "_kernels\\.cpp$")
  endif()
  set_source_files_properties(${kernels} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
    "$<$<BOOL:${TESSERA_KERNEL_MARCH}>:-march=${TESSERA_KERNEL_MARCH}>;-O3;-Wno-psabi;-Wno-pass-failed;-fopenmp-simd;-fno-math-errno;-fno-trapping-math;-fno-signed-zeros;-fassociative-math")
  if(TESSERA_SHARED_ROOMS)
    add_library(tessera_${name} SHARED ${sources})
  else()
    add_library(tessera_${name} STATIC ${sources})
  endif()
  target_include_directories(tessera_${name} PUBLIC ${CMAKE_SOURCE_DIR}/lib)
  set(torch "")
  if(ROOM_TORCH)
    set(torch TORCH)
    target_link_libraries(tessera_${name} PUBLIC dep::torch)
    tessera_torch_target(tessera_${name})
    set_property(GLOBAL APPEND PROPERTY TESSERA_TORCH_ROOMS ${name})
  else()
    target_precompile_headers(tessera_${name} REUSE_FROM plain_pch)
  endif()
  tessera_unity(tessera_${name} ${sources})
  target_link_libraries(tessera_${name} PUBLIC ${ROOM_DEPENDS})
  if(kernels AND TESSERA_KERNEL_ARCHS)
    tessera_kernels(${name} ${torch} ${kernels})
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${name})
endfunction()

# cmd/NAME.cpp as the program build/bin/NAME, underscores as hyphens. Those that link torch (TORCH_PROGRAMS) are all in
# libtessera.so; bin has a front of each, cmd/front, which loads that library when there is work.
function(tessera_programs)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmd/*.cpp)
  set(torch_sources "")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "_" "-" name ${name})
    if(name IN_LIST TORCH_PROGRAMS)
      list(APPEND torch_sources ${source})
    else()
      tessera_executable(${name} ${source})
      target_link_libraries(${name} PRIVATE tessera_cli tessera_passages tessera_ngrams tessera_task)
      target_precompile_headers(${name} REUSE_FROM plain_pch)
    endif()
    set_property(GLOBAL APPEND PROPERTY TESSERA_PROGRAMS ${name})
  endforeach()
  tessera_library(${torch_sources})
  tessera_fronts()
  tessera_program_list()
endfunction()

# libtessera.so, of the programs SOURCE... .
function(tessera_library)
  set(MAIN_DECLARATIONS "")
  set(MAIN_ROWS "")
  foreach(program ${TORCH_PROGRAMS})
    string(REPLACE "-" "_" symbol ${program}_main)
    string(APPEND MAIN_DECLARATIONS "int ${symbol}(int argc, char** argv);\n")
    string(APPEND MAIN_ROWS "    {\"${program}\", ${symbol}},\n")
  endforeach()
  configure_file(${CMAKE_SOURCE_DIR}/cmake/mains.cpp.in ${CMAKE_BINARY_DIR}/generated/mains.cpp @ONLY)
  file(GLOB interface CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lib/tessera/*.cpp)  # which no program needs
  add_library(tessera_library SHARED ${ARGN} ${interface} ${CMAKE_BINARY_DIR}/generated/mains.cpp)
  target_include_directories(tessera_library PRIVATE ${CMAKE_SOURCE_DIR}/cmd)
  target_link_libraries(tessera_library PRIVATE tessera_cli tessera_forecast tessera_task)
  target_link_options(tessera_library PRIVATE -Wl,-Bsymbolic-functions $<$<NOT:$<BOOL:${TESSERA_SANITIZE}>>:-Wl,-z,defs>)
  tessera_torch_target(tessera_library)
  tessera_batches(tessera_library 5)
  set_target_properties(tessera_library PROPERTIES OUTPUT_NAME tessera
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tessera)
endfunction()

function(tessera_fronts)
  set(folder ${CMAKE_BINARY_DIR}/generated/offers)
  file(MAKE_DIRECTORY ${folder})
  set(offers ${TORCH_PROGRAMS})
  list(TRANSFORM offers REPLACE "(.+)" "${folder}/\\1.cpp")
  add_executable(write_offers EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmd/front/write_offers.cpp)
  target_include_directories(write_offers PRIVATE ${CMAKE_SOURCE_DIR}/cmd)
  target_link_libraries(write_offers PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(write_offers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/generated)
  add_custom_command(OUTPUT ${offers} DEPENDS write_offers tessera_library
    COMMAND write_offers $<TARGET_FILE:tessera_library> ${folder} ${TORCH_PROGRAMS} VERBATIM)
  add_library(front OBJECT ${CMAKE_SOURCE_DIR}/cmd/front/front.cpp)
  target_include_directories(front PRIVATE ${CMAKE_SOURCE_DIR}/cmd)
  target_link_libraries(front PRIVATE tessera_cli)
  target_precompile_headers(front REUSE_FROM plain_pch)
  tessera_fork_server()
  foreach(program ${TORCH_PROGRAMS})
    add_executable(${program} ${folder}/${program}.cpp)
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/cmd)
    target_link_libraries(${program} PRIVATE front tessera_cli ${CMAKE_DL_LIBS})
    set_target_properties(${program} PROPERTIES BUILD_RPATH $ORIGIN/../lib/tessera)
  endforeach()
endfunction()

# The fronts' side of the fork server (cmake/Tests.cmake). What is packed has none.
function(tessera_fork_server)
  option(TESSERA_FORK_SERVER "Programs can run in a fork server, for fast tests" ON)
  if(NOT TESSERA_FORK_SERVER OR TESSERA_SANITIZE)
    return()
  endif()
  target_sources(front PRIVATE ${CMAKE_SOURCE_DIR}/cmd/front/fork_client.cpp ${CMAKE_SOURCE_DIR}/cmd/front/fork_request.cpp)
  target_compile_definitions(front PRIVATE TESSERA_FORK_SERVER)
endfunction()

# generated/programs.h, for tessera: the others by name, with what their manuals say they are.
function(tessera_program_list)
  get_property(programs GLOBAL PROPERTY TESSERA_PROGRAMS)
  set(PROGRAM_LINES "")
  foreach(program ${programs})
    set(page ${CMAKE_SOURCE_DIR}/man/${program}.1.scd)
    if(program STREQUAL tessera)
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    set(summary "")
    if(EXISTS ${page})
      file(STRINGS ${page} summary REGEX "^${program} - " LIMIT_COUNT 1)
    endif()
    string(REGEX REPLACE "^${program} - " "" summary "${summary}")
    string(REPLACE "\\;" ";" summary "${summary}")
    string(APPEND PROGRAM_LINES "    {\"${program}\", \"${summary}\"},\n")
  endforeach()
  configure_file(${CMAKE_SOURCE_DIR}/cmake/programs.h.in ${CMAKE_BINARY_DIR}/generated/programs.h @ONLY)
  target_include_directories(tessera PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
