#pragma once
// Distinguishes shards from other files.

#include <string>

namespace shard {

/// Returns true for a regular file that begins as a shard; does not check the rest. Throws
/// Error{no_input}.
bool is_shard(const std::string& path);

}  // namespace shard
