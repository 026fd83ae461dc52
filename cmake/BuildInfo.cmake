# tessera_build_info: what lib/core/build_info.h declares, as two generated sources; only one depends on the revision.

set(generated ${CMAKE_BINARY_DIR}/generated)

# header_version(RESULT FILE PREFIX): 1.2.3 from "#define PREFIX_MAJOR 1" and so on; empty where the file has none.
function(header_version result file prefix)
  set(lines "")
  if(EXISTS "${file}")
    file(STRINGS "${file}" lines REGEX "#define ${prefix}_?(MAJOR|MINOR|PATCH|RELEASE) +[0-9]+")
  endif()
  string(REGEX REPLACE "#define [A-Z0-9_]+ +([0-9]+)[^;]*" "\\1" numbers "${lines}")
  list(JOIN numbers . version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()
header_version(JSON_VERSION ${DEP_json_INCLUDE}/nlohmann/detail/abi_macros.hpp NLOHMANN_JSON_VERSION)
if(NOT JSON_VERSION)
  header_version(JSON_VERSION ${DEP_json_INCLUDE}/nlohmann/json.hpp NLOHMANN_JSON_VERSION)
endif()
header_version(CLI11_VERSION ${DEP_cli11_INCLUDE}/CLI/Version.hpp CLI11_VERSION)
header_version(TOML_VERSION ${DEP_toml_INCLUDE}/toml++/impl/version.h TOML_LIB)

string(TOUPPER ${CMAKE_BUILD_TYPE} build_type)
set(build_flags "${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
if(TESSERA_KERNEL_ARCHS)
  list(JOIN TESSERA_KERNEL_ARCHS " or " kernel_archs)
  string(APPEND build_flags " -march=${TESSERA_BASE_ARCH}, kernels -march=${kernel_archs} as the loader finds the processor")
elseif(TESSERA_ARCH)
  string(APPEND build_flags " -march=${TESSERA_BASE_ARCH}, kernels -march=${TESSERA_ARCH}")
endif()
if(TESSERA_SANITIZE)
  string(APPEND build_flags " -fsanitize=address,undefined")
endif()
string(REGEX REPLACE " +" " " build_flags "${build_flags}")

configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.cpp.in ${generated}/build_info.cpp)

# Runs at each build, but writes only when the revision is another one.
add_custom_target(build-git
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${generated}/build_git.cpp
    -P ${CMAKE_CURRENT_LIST_DIR}/revision.cmake
  BYPRODUCTS ${generated}/build_git.cpp COMMENT "" VERBATIM)
add_library(tessera_build_info STATIC ${generated}/build_info.cpp ${generated}/build_git.cpp)
add_dependencies(tessera_build_info build-git)
target_include_directories(tessera_build_info PRIVATE ${CMAKE_SOURCE_DIR}/lib)
