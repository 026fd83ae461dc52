#pragma once
// Opens a store's folder for searching.

#include "store/exact_search.h"
#include "store/index.h"
#include "store/npy.h"
#include "store/projection.h"
#include "store/store.h"

namespace store {

/// A Datastore maps keys and labels, so a store may be larger than RAM. It sees only the rows that
/// store.json counts. Thread safe.
class Datastore : public Store {
 public:
  /// Opens a store. Checks store.json, the arrays' headers and sizes, every first row in
  /// documents.npy, and every byte of index.faiss before FAISS reads it. Throws Error{no_input} if
  /// it is not a store or is incomplete, Error{bad_data} for corrupt or inconsistent files. If a
  /// store without keys has a kKeysLink, the keys there are mapped for rescoring; throws
  /// Error{bad_data} unless they have the width, number and digest of the store's.
  explicit Datastore(const std::string& folder) : Datastore(folder, true) {}
  /// Opens the files in the folder that a manifest names, which store.json may not have yet.
  Datastore(const std::string& folder, Manifest manifest);
  /// Opens a store as an exact store, ignoring its index. A store without keys cannot be searched
  /// then.
  static Datastore without_index(const std::string& folder) { return {folder, false}; }

  /// Replaces the exact search on this machine's processors by `search`. Call it before any search.
  void look_by(std::unique_ptr<const KeySearch> search) { exact_ = std::move(search); }

  const std::string& name() const override { return folder_; }
  const Manifest& manifest() const override { return manifest_; }
  Hits search(std::span<const float> queries, const SearchOptions& options = {}) const override;
  RowContext context(std::int64_t row, std::int64_t most) const override;
  void expect_rescorable() const override;
  void expect_followable() const override;
  std::int64_t after(std::int64_t row) const override;
  void score(std::span<const float> query, std::span<const std::int64_t> rows,
      std::span<float> scores, std::span<std::int32_t> labels) const override;
  /// Searches all keys as search() does, ignoring the index. Throws Error{usage} if they were not
  /// kept.
  Hits search_exactly(std::span<const float> queries, const SearchOptions& options = {}) const;

  /// Returns all keys, shape (N, d). Throws Error{usage} if they were not kept.
  std::span<const Half> keys() const {
    expect_keys("reading them");
    return keys_.values<Half>();
  }
  /// Returns all labels, shape (N).
  std::span<const std::int32_t> labels() const { return values_.values<std::int32_t>(); }
  /// Returns the first row of each document, ascending. Documents without rows repeat the next
  /// value.
  std::span<const std::int64_t> documents() const { return documents_.values<std::int64_t>(); }
  /// Returns the position of each row among all visited positions, shape (N); empty if the store is
  /// whole.
  std::span<const std::int64_t> places() const { return places_.values<std::int64_t>(); }
  /// Returns how many entries each row represents, shape (N); empty unless entries were merged.
  std::span<const std::int32_t> weights() const { return weights_.values<std::int32_t>(); }
  /// Returns the names of the documents; empty if they have none.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the number of the document that contains a row.
  std::int64_t document_of(std::int64_t row) const;
  const Index* index() const { return index_.get(); }

 private:
  Datastore(const std::string& folder, bool with_index);
  void open_files(bool with_index);
  void open_linked_keys();
  /// Scales and projects queries as the keys were.
  std::span<const float> project(std::span<const float> queries, std::vector<float>& room) const;
  /// Converts scores of scaled keys and queries to scores of unscaled ones.
  void undo_scale(std::span<float> scores) const;
  void rescore(std::span<const float> queries, Hits& hits) const;
  void expect_finite(std::span<const float> queries) const;
  void add_labels(Hits& hits) const;
  Hits empty_hits(std::span<const float> queries, const SearchOptions& options) const;
  std::string folder_;
  Manifest manifest_;
  NpyArray keys_;  // those of kKeysLink if the store has none; empty: none
  NpyArray values_, documents_, places_, weights_;
  std::vector<std::string> names_;
  Projection projection_;  // of queries, if keys were projected
  std::unique_ptr<const KeySearch> exact_;
  std::unique_ptr<Index> index_;
};

/// Measures recall as builder.h does; returns 1 for an exact store, which is its own reference.
Recall measure_recall(
    const Datastore& store, std::int64_t queries, std::int64_t k, std::int64_t nprobe);

}  // namespace store
