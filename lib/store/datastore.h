#pragma once
// A store/ folder, opened to search.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/index.h"
#include "store/key_search.h"
#include "store/manifest.h"
#include "store/npy.h"
#include "store/projection.h"
#include "store/store.h"

namespace store {

/// Keys and labels are mapped: a store may be larger than RAM. Only the rows that store.json counts
/// are seen. Thread safe.
class Datastore : public Store {
 public:
  /// Checks store.json, the arrays' headers and sizes, every first row of documents.npy, and every
  /// byte of index.faiss, before FAISS sees it. Throws Error{no_input} if it is no store or not
  /// complete, Error{bad_data} for what is damaged or does not belong together.
  explicit Datastore(const std::string& folder) : Datastore(folder, true) {}
  /// The same, but as an exact store, whatever its index.
  static Datastore without_index(const std::string& folder) { return {folder, false}; }

  /// Who looks at all keys from now on, in place of this machine's processors. Before any search.
  void look_by(std::unique_ptr<const KeySearch> search) { exact_ = std::move(search); }

  const std::string& name() const override { return folder_; }
  const Manifest& manifest() const override { return manifest_; }
  Hits search(std::span<const float> queries, const SearchOptions& options = {}) const override;
  RowContext context(std::int64_t row, std::int64_t most) const override;
  void expect_followable() const override;
  std::int64_t after(std::int64_t row) const override;
  void score(std::span<const float> query, std::span<const std::int64_t> rows,
             std::span<float> scores, std::span<std::int32_t> labels) const override;
  /// As search(), from all keys, whatever the index.
  Hits search_exactly(std::span<const float> queries, const SearchOptions& options = {}) const;

  std::span<const Half> keys() const { return keys_.values<Half>(); }  ///< (N, d)
  std::span<const std::int32_t> labels() const { return values_.values<std::int32_t>(); }  ///< (N)
  /// First row of each document, ascending; equal ones where a document has no row.
  std::span<const std::int64_t> documents() const { return documents_.values<std::int64_t>(); }
  /// (N) of a store that is not whole: the position of each row, counted in all that were walked.
  std::span<const std::int64_t> places() const { return places_.values<std::int64_t>(); }
  /// (N) of a store whose entries were merged: how many each row stands for.
  std::span<const std::int32_t> weights() const { return weights_.values<std::int32_t>(); }
  /// Names of the documents; empty: they have none.
  const std::vector<std::string>& names() const { return names_; }
  /// Number of the document that a row is of.
  std::int64_t document_of(std::int64_t row) const;
  const Index* index() const { return index_.get(); }

 private:
  Datastore(const std::string& folder, bool with_index);
  void open_files(bool with_index);
  /// As the keys: multiplied and projected.
  std::span<const float> project(std::span<const float> queries, std::vector<float>& room) const;
  /// Scores of keys and queries that were multiplied, as if they were not.
  void undo_scale(std::span<float> scores) const;
  void rescore(std::span<const float> queries, Hits& hits) const;
  void expect_finite(std::span<const float> queries) const;
  void add_labels(Hits& hits) const;
  Hits empty_hits(std::span<const float> queries, const SearchOptions& options) const;
  std::string folder_;
  Manifest manifest_;
  NpyArray keys_, values_, documents_, places_, weights_;
  std::vector<std::string> names_;
  Projection projection_;  // of queries, where keys were projected
  std::unique_ptr<const KeySearch> exact_;
  std::unique_ptr<Index> index_;
};

/// As of an index (builder.h); 1 of an exact store, which is its own measure.
Recall measure_recall(const Datastore& store, std::int64_t queries, std::int64_t k,
                      std::int64_t nprobe);

}  // namespace store
