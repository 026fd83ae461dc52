#pragma once
// Handles shards that are parts of one command's work. The last provenance entry of a part has the
// option "part": "2/8"; without this option, the entries of all parts are equal.

#include <optional>
#include <vector>

#include "core/json.h"
#include "core/launcher.h"
#include "shard/file.h"

namespace shard {

/// Adds the part to an entry's options.
void put_part(core::OrderedJson& options, const core::Part& part);
/// Removes the part from the last entry, which then describes the whole, and returns it. Returns
/// nothing if the entry has no part.
std::optional<core::Part> take_part(std::vector<core::OrderedJson>& provenance);

/// Sorts the parts of one command if each is present exactly once. Otherwise returns false and
/// leaves `files` unchanged.
bool order_parts(std::vector<File>& files);
/// Throws Error{usage} if some of `files` are parts but `files` is not exactly all parts of one
/// command; the message names a part that is missing, duplicate or of another command.
void refuse_incomplete(const std::vector<File>& files);

}  // namespace shard
