#pragma once
// Reads whole files.

#include <cstddef>
#include <string>

#include "core/json.h"

namespace core {

/// Returns the bytes of a regular file. Throws Error{no_input} if it cannot be opened or is not a
/// regular file (a pipe might never be written to), and Error{bad_data} if it is larger than
/// `limit` bytes.
std::string read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);

/// Reads and parses a file that holds one JSON document. A number beyond double's range becomes
/// 9e307, so that a member that is not used may hold one. Throws as read_file() and parse_json()
/// do.
Json read_json(const std::string& path, std::size_t limit = std::size_t{1} << 30);

}  // namespace core
