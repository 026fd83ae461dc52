#pragma once
// building.json: what is being done to a store, and how far rows have come that are not in
// store.json yet.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "shard/fingerprint.h"

namespace store {

/// Rows on disk behind those of store.json, of a command that was not finished; or a removal.
struct Progress {
  core::Json plan;           ///< what the command was: an equal one may go on
  std::uint64_t rows = 0;    ///< of the store, those before the command included
  shard::Chain digest;       ///< of all these rows, as Manifest's
  core::Json place;          ///< where the command's input goes on
  std::string trained_hash;  ///< XXH3-128 of kTrainedName; empty: not trained yet

  std::uint64_t generation() const;  ///< that the command makes
  /// Documents that it removes, ascending; none: it adds rows.
  std::vector<std::int64_t> removes() const;
  /// A removal: it stays until its receipts were given.
  static Progress removal(const std::vector<std::int64_t>& documents, std::uint64_t generation);
};

inline constexpr const char* kProgressName = "building.json";
inline constexpr const char* kTrainedName = "index.trained.faiss";

/// None if the folder has no building.json. Throws Error{bad_data}.
std::optional<Progress> read_progress(const std::string& folder);
/// Whole or not at all.
void write_progress(const std::string& folder, const Progress& progress);
void remove_progress(const std::string& folder);
/// Throws Error{usage} if a removal was begun whose receipts were not given, unless it is of these
/// documents.
void expect_no_removal(const std::string& folder, const std::vector<std::int64_t>& but = {});

}  // namespace store
