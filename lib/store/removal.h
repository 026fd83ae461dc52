#pragma once
// Looking after a store: taking documents out of it for good, making its index anew, checking it.

#include <cstdint>
#include <string>
#include <vector>

#include "core/folder_lock.h"
#include "store/build_progress.h"
#include "store/builder.h"

namespace store {

/// Writes a new generation without the documents (numbers from 0; the later ones move up, as their
/// rows do) and deletes the files of the old one: their keys and labels are in no file afterwards,
/// and in the index neither. An index of inverted lists (IVF with Flat, SQ or PQ) is cut, any other
/// is filled anew; what training learned from all rows (centroids) stays.
///
/// Killed at any moment, it leaves the old store or the new, and in building.json what it is: the
/// same removal again goes on, deletes what is left to delete, and has the same receipts, until
/// done() says that they were given. Any other change of the store is refused until then.
class Removal {
 public:
  /// All of it. Throws Error{usage} for a document that is not there, if none would be left, or if
  /// another removal was stopped.
  Removal(const std::string& folder, std::vector<std::int64_t> documents, const Watch& watch = {});
  /// What store.json records of each document.
  const std::vector<Receipt>& receipts() const { return receipts_; }
  const Manifest& manifest() const { return manifest_; }
  /// The receipts were given: from now on the same command is another removal.
  void done();

 private:
  void remove(const std::vector<std::int64_t>& documents, const Watch& watch);
  std::string folder_;
  core::FolderLock lock_;
  Manifest manifest_;
  std::vector<Receipt> receipts_;
};

/// Makes the store's index anew from its keys, in a new generation, after all rows were held
/// against their digest: of the factory string `index`, or, where that is empty, as it was. The
/// index that is there is not read. Killed at any moment, it leaves the old store or the new.
/// Throws Error{usage} as Index::make() does, Error{bad_data} for damaged rows.
Manifest rebuild_index(const std::string& folder, const std::string& index,
                       const Watch& watch = {});

/// Reads every byte of a store: rows against their digest, labels against the vocabulary, and what
/// opening checks. Throws Error{bad_data} naming what is damaged.
void verify(const std::string& folder, const Watch& watch = {});

}  // namespace store
