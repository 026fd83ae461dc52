#pragma once
// Removes documents from a store permanently, rebuilds its index, and verifies it.

#include "store/builder.h"

namespace store {

/// A RemovalRequest says which documents to remove.
struct RemovalRequest {
  std::vector<std::int64_t> documents;  ///< document numbers, from 0
  /// The generation of the store that the numbers refer to; unset: the current one.
  std::optional<std::uint64_t> generation = {};
};

/// A BeforeCommit is called just before store.json is renamed into place; until then nothing has
/// changed.
using BeforeCommit = std::function<void()>;

/// A Removal writes a new generation without the documents and deletes the files of the old one.
/// Later documents and their rows move up. Afterwards no file contains the removed keys and labels,
/// and the index does not either. An index of inverted lists (IVF with Flat, SQ or PQ) is edited;
/// any other index is refilled. What training learned from all rows (centroids) remains.
///
/// A process that is killed at any moment leaves the old store or the new one. Until done()
/// confirms that the receipts were delivered, building.json records the removal and the store
/// refuses any other change.
///
/// Repeating the request completes an interrupted removal. If store.json already records the
/// removal, the request removes nothing, returns the receipts of that removal, and repeated() is
/// true; since document numbers shift, the number would otherwise refer to another document. A
/// request with a generation refers to the removal from that generation; a request without one
/// refers to the last removal in store.json.
class Removal {
 public:
  /// Performs the whole removal. Throws Error{usage} if the keys were not kept, for a document that
  /// does not exist, if no document would remain, if another removal was interrupted, and if the
  /// store's generation differs from the request's.
  Removal(const std::string& folder, RemovalRequest request, const ProgressCallback& watch = {},
      const BeforeCommit& before_commit = {});
  /// Returns store.json's record of each document.
  const std::vector<Receipt>& receipts() const { return receipts_; }
  const Manifest& manifest() const { return manifest_; }
  /// Returns true if the documents had already been removed, so that this request removed nothing.
  bool repeated() const { return repeated_; }
  /// Returns one line for the user: why nothing was removed, and how to remove the documents that
  /// have these numbers now.
  std::string repetition() const;
  /// Confirms that the receipts were delivered, and deletes building.json.
  void done();

 private:
  void remove(const ProgressCallback& watch, const BeforeCommit& before_commit);
  std::uint64_t removed_at() const;
  std::string folder_;
  RemovalRequest request_;
  core::FolderLock lock_;
  Manifest manifest_;
  std::vector<Receipt> receipts_;
  bool repeated_ = false;
};

/// Rebuilds the store's index from its keys in a new generation, after verifying the digest of all
/// rows. `index` is the factory string; if empty, it is the current one. The existing index is not
/// read. A process that is killed at any moment leaves the old store or the new one. Throws
/// Error{usage} as Index::make() does and if the keys were not kept, Error{bad_data} for corrupt
/// rows.
Manifest rebuild_index(const std::string& folder, const std::string& index,
    const ProgressCallback& watch = {}, const BeforeCommit& before_commit = {});

/// Reads every byte of a store and checks the rows' digest (without keys, the labels' hash), the
/// labels' range, and everything that opening checks. Throws Error{bad_data}, naming what is
/// corrupt.
void verify(const std::string& folder, const ProgressCallback& watch = {});

}  // namespace store
