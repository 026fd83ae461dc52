#pragma once
// Telling shards from other files.

#include <string>

namespace shard {

/// A regular file that begins as shards do; whether it is whole is not looked at. Throws
/// Error{no_input}.
bool is_shard(const std::string& path);

}  // namespace shard
