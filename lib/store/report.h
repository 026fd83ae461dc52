#pragma once
// What build-datastore says of a store.

#include <string>

#include "core/json.h"
#include "store/manifest.h"

namespace store {

/// store (the folder), generation, rows, width, documents, metric, index, recall, k, nprobe,
/// queries, model, tokenizer, fingerprint.
core::OrderedJson describe(const std::string& folder, const Manifest& manifest);

}  // namespace store
