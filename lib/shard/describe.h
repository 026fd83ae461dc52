#pragma once
// The figures of a shard, or of several as one.

#include <string>

#include "core/json.h"
#include "shard/dataset.h"

namespace shard {

/// What `shard info` says: kind, type, sizes, documents, bytes and words of the source,
/// fingerprints; `path` as the file's name. Of a tokenizer its "model"."type" in tokenizer.json.
core::OrderedJson describe(const std::string& path, const Dataset& data);
/// What made it, a line for each entry of its provenance.
std::string made_by(const Dataset& data);

}  // namespace shard
