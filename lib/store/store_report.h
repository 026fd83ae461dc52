#pragma once
// Formats a store's report for programs.

#include <string>
#include <vector>

#include "core/json.h"
#include "store/manifest.h"
#include "store/removal.h"

namespace store {

/// Returns store (the folder), generation, rows, width, documents, metric, index, recall, k,
/// nprobe, queries, model, tokenizer, fingerprint.
core::OrderedJson describe(const std::string& folder, const Manifest& manifest);
/// Returns a warning where the index was measured to find less than nine in ten of the nearest
/// keys, with what helps; else an empty text.
std::string recall_warning(const std::string& folder, const Manifest& manifest);
/// Returns a note if the index, which the user did not choose, is another than default_index(),
/// whose recall was too low; else an empty text.
std::string choice_note(const std::string& folder, const Manifest& manifest);
/// Returns one record per removed document.
std::vector<core::OrderedJson> describe(const Removal& removal);

}  // namespace store
