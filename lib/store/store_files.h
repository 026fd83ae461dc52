#pragma once
// Lists the file names of a store: only these files may be replaced or removed in its folder.
// Reads and writes building.json, which records an unfinished command on a store and how many rows
// on disk are not yet in store.json.

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

/// Progress is the state of an unfinished command: the rows on disk beyond those of store.json, or
/// a removal.
struct Progress {
  core::Json plan;           ///< the command's plan; an equal plan may resume it
  std::uint64_t rows = 0;    ///< rows of the store, including those before the command
  shard::Chain digest;       ///< digest of all these rows, as in Manifest
  core::Json place;          ///< the position in the input from which the command resumes
  std::string trained_hash;  ///< XXH3-128 of kTrainedName; empty: not yet trained

  std::uint64_t generation() const;  ///< returns the generation that the command makes
  /// Returns the documents that the command removes, ascending; empty if it adds rows.
  std::vector<std::int64_t> removes() const;
  /// Returns the progress of a removal. It remains until its receipts have been delivered.
  static Progress removal(const std::vector<std::int64_t>& documents, std::uint64_t generation);
};

inline constexpr const char* kProgressName = "building.json";
inline constexpr const char* kTrainedName = "index.trained.faiss";

/// Reads building.json; returns nothing if the folder has none. Throws Error{bad_data}.
std::optional<Progress> read_progress(const std::string& folder);
/// Writes building.json through core::Output.
void write_progress(const std::string& folder, const Progress& progress);
void remove_progress(const std::string& folder);
/// Throws Error{usage} if the receipts of an earlier removal have not been delivered, unless that
/// removal has exactly the documents `but`.
void expect_no_removal(const std::string& folder, const std::vector<std::int64_t>& but = {});

}  // namespace store
