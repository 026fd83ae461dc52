#pragma once
// Reads and writes building.json, which records an unfinished command on a store and how many rows
// on disk are not yet in store.json.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "shard/fingerprint.h"

namespace store {

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
