#pragma once
// What programs say of a store.

#include <string>
#include <vector>

#include "core/json.h"
#include "store/manifest.h"
#include "store/removal.h"

namespace store {

/// store (the folder), generation, rows, width, documents, metric, index, recall, k, nprobe,
/// queries, model, tokenizer, fingerprint.
core::OrderedJson describe(const std::string& folder, const Manifest& manifest);
/// Where the store's index was found to find less than nine in ten of the nearest keys: that, and
/// what helps; else empty.
std::string recall_warning(const std::string& folder, const Manifest& manifest);
/// A record for each document that was removed.
std::vector<core::OrderedJson> describe(const Removal& removal);

}  // namespace store
