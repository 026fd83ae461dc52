#pragma once
// names.txt: what the documents of a store are called, a line each.

#include <cstdint>
#include <string>
#include <vector>

namespace store {

/// Whole or not at all. Returns the XXH3-128 of its bytes, hex. Throws Error{bad_data} for a name
/// with a newline in it.
std::string write_names(const std::string& path, const std::vector<std::string>& names);

/// Throws Error{bad_data} unless it has the hash, and as many lines of UTF-8.
std::vector<std::string> read_names(const std::string& path, std::uint64_t count,
                                    const std::string& hash);

}  // namespace store
