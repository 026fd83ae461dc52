#pragma once
// Opens a store's folder for searching.
// The interface of a store to memories, independent of where its rows are. Datastore implements it
// for a folder; parts on one or several machines could implement it together.

#include "store/exact_search.h"
#include "store/index.h"
#include "store/npy.h"
#include "store/projection.h"

namespace store {

inline constexpr std::int64_t kMostNeighbours = 65'536;

/// SearchOptions holds the parameters of a search.
struct SearchOptions {
  std::int64_t k = 1024;  ///< 1 to kMostNeighbours
  /// Inverted lists to search; exact stores ignore it.
  std::int64_t nprobe = 32;
  std::int64_t threads = 0;  ///< threads of exact search; 0: one per processor
  /// Recomputes the scores of FAISS's hits from the stored keys and sorts again. Throws
  /// Error{usage} as Store::expect_rescorable() does.
  bool rescore = false;
};

/// Hits are the k nearest rows of n queries, in row-major order. Scores are q.k (ip) or -|q - k|^2
/// (l2), largest first, not divided by a temperature. FAISS computes them from compressed keys
/// unless they are rescored. Missing hits have id -1, score -infinity, label -1.
struct Hits {
  std::int64_t k = 0;
  std::vector<std::int64_t> ids;     ///< shape (n, k): rows of the store
  std::vector<float> scores;         ///< shape (n, k)
  std::vector<std::int32_t> labels;  ///< shape (n, k): the token after the key's context
  /// Number of entries that each hit represents, shape (n, k); 1 for missing hits; empty: 1 each. A
  /// hit's kernel counts that many times: log(weight) is added to score / temperature.
  std::vector<std::int32_t> weights = {};
};

/// A RowContext says where a row comes from.
struct RowContext {
  std::int64_t document = 0;  ///< number of the document in the store
  /// Labels of the preceding rows in the document; in a store that leaves positions out, only those
  /// at immediately preceding positions.
  std::vector<std::int32_t> before;
  std::string name = {};  ///< name of the document; empty: none
};

/// A Store answers searches. Thread safe.
class Store {
 public:
  virtual ~Store() = default;

  /// Returns the name for messages and citations.
  virtual const std::string& name() const = 0;
  /// Returns the manifest of the whole store.
  virtual const Manifest& manifest() const = 0;
  /// Finds the nearest rows for queries (n, query_width). Throws Error{usage} for a k or nprobe out
  /// of range, Error{bad_data} for queries that are not finite.
  virtual Hits search(std::span<const float> queries, const SearchOptions& options = {}) const = 0;
  /// Returns the context of a row that a search found, with at most `most` preceding labels.
  virtual RowContext context(std::int64_t row, std::int64_t most) const = 0;

  /// Throws Error{usage} that names `what`, the work that needs keys, if the store has none.
  void expect_keys(std::string_view what) const;
  /// Throws Error{usage} if the store has no keys to compute scores from (SearchOptions::rescore).
  virtual void expect_rescorable() const;
  /// Throws Error{usage} if the rows are not available locally, as after() and score() do.
  virtual void expect_followable() const;
  /// Returns the next row in the row's document; -1 if there is none. Throws Error{usage} if the
  /// rows are not available locally.
  virtual std::int64_t after(std::int64_t row) const;
  /// Computes exact scores and labels of rows for one query (width). Throws Error{bad_data} for a
  /// query that is not finite, Error{usage} if the rows are not available locally.
  virtual void score(std::span<const float> query, std::span<const std::int64_t> rows,
      std::span<float> scores, std::span<std::int32_t> labels) const;

  std::int64_t size() const { return static_cast<std::int64_t>(manifest().rows); }
  /// Returns the width of queries; width() is that of the stored keys.
  std::int64_t query_width() const { return static_cast<std::int64_t>(manifest().query_width()); }
  std::int64_t width() const { return static_cast<std::int64_t>(manifest().width); }
  Metric metric() const { return manifest().metric; }
  /// Returns the fingerprint of everything that affects search results; see Manifest.
  std::string fingerprint() const { return manifest().fingerprint(); }
  /// Throws Error{bad_data}, naming both fingerprints, unless the store's keys come from this model
  /// and its labels from this tokenizer. The arguments are hexadecimal; an empty fingerprint on
  /// either side is not compared. `model_name` is for the message.
  void expect_model(
      const std::string& model, const std::string& tokenizer, const std::string& model_name) const;
};

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
