#pragma once
// Looking after a store: taking documents out of it for good, making its index anew, checking it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/folder_lock.h"
#include "store/build_progress.h"
#include "store/builder.h"

namespace store {

/// What is to go.
struct RemovalRequest {
  std::vector<std::int64_t> documents;  ///< their numbers, from 0
  /// The generation of the store whose numbers these are; none: the one that is there.
  std::optional<std::uint64_t> generation = {};
};

/// Is called just before store.json gets its name: until then nothing has changed.
using BeforeCommit = std::function<void()>;

/// Writes a new generation without the documents (numbers from 0; the later ones move up, as their
/// rows do) and deletes the files of the old one: their keys and labels are in no file afterwards,
/// and in the index neither. An index of inverted lists (IVF with Flat, SQ or PQ) is cut, any other
/// is filled anew; what training learned from all rows (centroids) stays.
///
/// A process that is killed at any moment leaves the old store or the new one. Until done() says
/// that the receipts were given, building.json says which removal this is, and any other change of
/// the store is refused.
///
/// The same request again finishes what the killed process began. If the removal is in store.json
/// already, the request removes nothing: it has the receipts of that removal, and repeated() is
/// true. Numbers shift, so the same number would be another document. Which removal that is: with a
/// generation, the one that was made of this generation; without one, the last that store.json
/// records.
class Removal {
 public:
  /// All of it. Throws Error{usage} for a document that is not there, if none would be left, if
  /// another removal was stopped, or if the store is of another generation than the request.
  Removal(const std::string& folder, RemovalRequest request, const Watch& watch = {},
          const BeforeCommit& before_commit = {});
  /// What store.json records of each document.
  const std::vector<Receipt>& receipts() const { return receipts_; }
  const Manifest& manifest() const { return manifest_; }
  /// The documents had been removed before: nothing was removed now.
  bool repeated() const { return repeated_; }
  /// One line for the user: why nothing was removed, and how to remove what has these numbers now.
  std::string repetition() const;
  /// The receipts were given: building.json goes.
  void done();

 private:
  void remove(const Watch& watch, const BeforeCommit& before_commit);
  std::uint64_t removed_at() const;
  std::string folder_;
  RemovalRequest request_;
  core::FolderLock lock_;
  Manifest manifest_;
  std::vector<Receipt> receipts_;
  bool repeated_ = false;
};

/// Makes the store's index anew from its keys, in a new generation, after all rows were held
/// against their digest: of the factory string `index`, or, where that is empty, as it was. The
/// index that is there is not read. Killed at any moment, it leaves the old store or the new.
/// Throws Error{usage} as Index::make() does, Error{bad_data} for damaged rows.
Manifest rebuild_index(const std::string& folder, const std::string& index, const Watch& watch = {},
                       const BeforeCommit& before_commit = {});

/// Reads every byte of a store: rows against their digest, labels against the vocabulary, and what
/// opening checks. Throws Error{bad_data} naming what is damaged.
void verify(const std::string& folder, const Watch& watch = {});

}  // namespace store
