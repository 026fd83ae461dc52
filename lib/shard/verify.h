#pragma once
// Checks all that can be checked of a shard.

#include <string>

#include "shard/header.h"

namespace shard {

/// Reads all of the shard at `path` ("-": stdin) and throws what is wrong with it; its trailer
/// otherwise. Of a regular file the fingerprint is computed anew from the elements; of a pipe,
/// where documents are known only behind their elements, the hash of its bytes vouches for them.
Trailer verify(const std::string& path);

}  // namespace shard
