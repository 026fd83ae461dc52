#pragma once
// A store/ folder, opened to search.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/exact_search.h"
#include "store/index.h"
#include "store/manifest.h"
#include "store/npy.h"

namespace store {

struct SearchOptions {
  std::int64_t k = 1024;     ///< 1 to 65,536
  std::int64_t nprobe = 32;  ///< inverted lists to look into; exact stores do not use it
  std::int64_t threads = 0;  ///< of exact search; 0: one a processor
  bool rescore = false;      ///< scores of FAISS's hits from the keys themselves, sorted anew
};

/// The k nearest of n queries, row after row. Scores are q.k (ip) or -|q - k|^2 (l2), the largest
/// first, not divided by any temperature. FAISS's are of compressed keys unless rescored. Where
/// fewer were found: id -1, score -infinity, label -1.
struct Hits {
  std::int64_t k = 0;
  std::vector<std::int64_t> ids;     ///< (n, k): rows of the store
  std::vector<float> scores;         ///< (n, k)
  std::vector<std::int32_t> labels;  ///< (n, k): the token that followed the key's context
};

/// Keys and labels are mapped: a store may be larger than RAM. Only the rows that store.json counts
/// are seen. Thread safe.
class Datastore {
 public:
  /// Checks store.json, the arrays' headers and sizes, and every byte of index.faiss, before FAISS
  /// sees it. Throws Error{no_input} if it is no store or not complete, Error{bad_data} for what is
  /// damaged or does not belong together.
  explicit Datastore(const std::string& folder);

  const std::string& name() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  std::int64_t size() const { return static_cast<std::int64_t>(manifest_.rows); }
  std::int64_t width() const { return static_cast<std::int64_t>(manifest_.width); }
  Metric metric() const { return manifest_.metric; }
  /// Of all that changes what a search finds; see Manifest.
  std::string fingerprint() const { return manifest_.fingerprint(); }

  /// Throws Error{bad_data} naming both fingerprints unless the store's keys are that model's and
  /// its labels that tokenizer's (hex; an empty one of either is not compared). `model_name` is for
  /// the message.
  void expect_model(const std::string& model, const std::string& tokenizer,
                    const std::string& model_name) const;

  /// queries (n, width). Throws Error{usage} for a k or nprobe out of range, Error{bad_data} for
  /// queries that are not finite.
  Hits search(std::span<const float> queries, const SearchOptions& options = {}) const;
  /// The same from all keys, whatever the index.
  Hits search_exactly(std::span<const float> queries, const SearchOptions& options = {}) const;

  std::span<const Half> keys() const { return keys_.values<Half>(); }  ///< (N, d)
  std::span<const std::int32_t> labels() const { return values_.values<std::int32_t>(); }  ///< (N)
  /// First row of each document, ascending; equal ones where a document has no row.
  std::span<const std::int64_t> documents() const { return documents_.values<std::int64_t>(); }
  /// Number of the document that a row is of.
  std::int64_t document_of(std::int64_t row) const;
  const Index* index() const { return index_.get(); }

 private:
  void open_files();
  void rescore(std::span<const float> queries, Hits& hits) const;
  void add_labels(Hits& hits) const;
  Hits empty_hits(std::span<const float> queries, const SearchOptions& options) const;
  std::string folder_;
  Manifest manifest_;
  NpyArray keys_, values_, documents_;
  std::optional<ExactSearch> exact_;
  std::unique_ptr<Index> index_;
};

/// As of an index (builder.h); 1 of an exact store, which is its own measure.
Recall measure_recall(const Datastore& store, std::int64_t queries, std::int64_t k,
                      std::int64_t nprobe);

}  // namespace store
