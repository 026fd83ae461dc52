#pragma once
// The names that files of a store have: what may be replaced or removed in its folder, and nothing
// else.

#include <string>
#include <string_view>
#include <vector>

#include "store/manifest.h"

namespace store {

/// STEM.ENDING, or STEM.G.ENDING of a generation G: what the arrays and the index are called.
bool is_generation_of(std::string_view name, std::string_view stem, std::string_view ending);
/// A name that only a store's programs give: store.json, building.json, index.trained.faiss, and
/// keys, values, documents, places, weights, projection (.npy), names (.txt) and index (.faiss) of
/// any generation.
bool is_store_file(std::string_view name);

/// The names that store.json gives, its own among them.
std::vector<std::string> files_of(const Manifest& manifest);

/// Throws Error{cannot_create} naming a file unless the folder holds a store, the beginning of one,
/// or nothing.
void expect_free(const std::string& folder);

/// Removes files of earlier generations and of interrupted commands, those that neither the
/// manifest nor a command in progress names, and syncs the folder. What bears no name of a store's
/// stays. Throws Error{io}.
void remove_stale_files(const std::string& folder, const Manifest& manifest);

/// Removes all that is a store's, and the folder if there is nothing else in it.
void remove_store(const std::string& folder);

}  // namespace store
