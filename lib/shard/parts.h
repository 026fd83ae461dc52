#pragma once
// Shards that are the parts of one command's work: the last entry of their provenance has the
// option "part": "2/8", and is the same without it.

#include <optional>
#include <vector>

#include "core/json.h"
#include "core/launcher.h"
#include "shard/file.h"

namespace shard {

/// Says in an entry's options which part it is.
void put_part(core::OrderedJson& options, const core::Part& part);
/// Takes it out of the last entry: what is left is the whole's. None if it says no part.
std::optional<core::Part> take_part(std::vector<core::OrderedJson>& provenance);

/// Puts all parts of one command, each there once, into their order. False if `files` are not that:
/// they stay as they are.
bool order_parts(std::vector<File>& files);
/// Throws Error{usage} naming what is missing, there twice or of another command if some of `files`
/// are parts, but they are not all parts of one command.
void refuse_incomplete(const std::vector<File>& files);

}  // namespace shard
