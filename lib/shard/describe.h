#pragma once
// Reports the figures of a shard, or of several shards as one.

#include <string>

#include "core/json.h"
#include "shard/dataset.h"

namespace shard {

/// Returns the report of `shard info`: kind, type, sizes, documents, bytes and words of the source,
/// fingerprints. `path` is reported as the file's name; a tokenizer is reported by its
/// "model"."type" in tokenizer.json.
core::OrderedJson describe(const std::string& path, const Dataset& data);
/// Returns one line per provenance entry, which says how the shard was made.
std::string made_by(const Dataset& data);

}  // namespace shard
