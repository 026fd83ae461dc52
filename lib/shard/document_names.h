#pragma once
// Reads and writes names.txt, which lists the names of the documents of a datastore or an n-gram
// index, one per line.

#include <cstdint>
#include <string>
#include <vector>

namespace shard {

/// Writes the names through core::Output and returns the XXH3-128 of the file's bytes in
/// hexadecimal. Throws Error{bad_data} for a name that contains a newline.
std::string write_names(const std::string& path, const std::vector<std::string>& names);

/// Reads `count` names. Throws Error{bad_data} unless the file has this hash and `count` lines of
/// UTF-8.
std::vector<std::string> read_names(const std::string& path, std::uint64_t count,
                                    const std::string& hash);

}  // namespace shard
