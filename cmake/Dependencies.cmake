# Third-party libraries as dep::NAME targets. Versions: whatever the distribution gives (tools/setup installs them).

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# dep_pkg(NAME MODULE): a library with a pkg-config file.
function(dep_pkg name module)
  pkg_check_modules(PC_${name} REQUIRED IMPORTED_TARGET GLOBAL ${module})
  add_library(dep::${name} ALIAS PkgConfig::PC_${name})
endfunction()

# dep_plain(NAME HEADER [LIBRARY]): a header, and a library found by its name.
function(dep_plain name header)
  find_path(DEP_${name}_INCLUDE ${header} REQUIRED)
  add_library(dep_${name} INTERFACE)
  if(ARGC GREATER 2)
    find_library(DEP_${name}_LIBRARY ${ARGV2} REQUIRED)
    target_link_libraries(dep_${name} INTERFACE ${DEP_${name}_LIBRARY})
  endif()
  add_library(dep::${name} ALIAS dep_${name})
endfunction()

dep_pkg(zstd libzstd)
dep_pkg(zlib zlib)
dep_pkg(lzma liblzma)
dep_pkg(xxhash libxxhash)
dep_pkg(fmt fmt)
dep_pkg(utf8proc libutf8proc)
dep_pkg(simdjson simdjson)
dep_pkg(pcre2 libpcre2-8)
dep_pkg(divsufsort libdivsufsort)
dep_plain(bzip2 bzlib.h bz2)
dep_plain(json nlohmann/json.hpp)
dep_plain(cli11 CLI/CLI.hpp)
dep_plain(toml toml++/toml.h)
dep_plain(stemmer libstemmer.h stemmer)
include(Torch)
include(Faiss)
