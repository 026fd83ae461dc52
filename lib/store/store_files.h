#pragma once
// Lists the file names of a store: only these files may be replaced or removed in its folder.

#include <string>
#include <string_view>
#include <vector>

#include "store/manifest.h"

namespace store {

/// Returns true for STEM.ENDING, and for STEM.G.ENDING with a generation G: the names of the arrays
/// and the index.
bool is_generation_of(std::string_view name, std::string_view stem, std::string_view ending);
/// Returns true for a name that only a store's programs use: store.json, building.json,
/// index.trained.faiss, and keys, values, documents, places, weights, projection (.npy), names
/// (.txt) and index (.faiss) of any generation.
bool is_store_file(std::string_view name);

/// Returns the file names that a manifest lists, including store.json.
std::vector<std::string> files_of(const Manifest& manifest);

/// Throws Error{cannot_create}, naming a file, unless the folder holds a store, an unfinished
/// store, or nothing.
void expect_free(const std::string& folder);

/// Removes files of earlier generations and of interrupted commands, that is, files that neither
/// the manifest nor an unfinished command names, and syncs the folder. Keeps files with other
/// names. Throws Error{io}.
void remove_stale_files(const std::string& folder, const Manifest& manifest);

/// Removes all files of a store, and the folder if it is then empty.
void remove_store(const std::string& folder);

}  // namespace store
