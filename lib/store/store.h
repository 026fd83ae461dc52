#pragma once
// What a memory needs of a store, wherever its rows are: in a folder (Datastore), and in time parts
// of it, on one machine or several, that answer as one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/manifest.h"

namespace store {

inline constexpr std::int64_t kMostNeighbours = 65'536;

struct SearchOptions {
  std::int64_t k = 1024;     ///< 1 to kMostNeighbours
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
  /// (n, k): how many entries each stands for, 1 where nothing was found; empty: 1 each. Its kernel
  /// counts so often: log(weight) is added to what the score comes to over the temperature.
  std::vector<std::int32_t> weights = {};
};

/// Where a row comes from.
struct RowContext {
  std::int64_t document = 0;  ///< its number in the store
  /// Labels of the rows before it, of the same document; of a store that leaves positions out those
  /// that stand right before each other.
  std::vector<std::int32_t> before;
  std::string name = {};  ///< of the document; empty: it has none
};

/// Thread safe.
class Store {
 public:
  virtual ~Store() = default;

  /// For messages and citations.
  virtual const std::string& name() const = 0;
  /// What the store holds, all its parts together.
  virtual const Manifest& manifest() const = 0;
  /// queries (n, query_width). Throws Error{usage} for a k or nprobe out of range, Error{bad_data}
  /// for queries that are not finite.
  virtual Hits search(std::span<const float> queries, const SearchOptions& options = {}) const = 0;
  /// Of a row that a search found, with at most `most` labels before it.
  virtual RowContext context(std::int64_t row, std::int64_t most) const = 0;

  /// Throws Error{usage} where after() and score() would.
  virtual void expect_followable() const;
  /// The row after this one, of the same document; -1: there is none.
  virtual std::int64_t after(std::int64_t row) const;
  /// Exact scores and labels of rows, for a query (width). Throws Error{bad_data} for a query that
  /// is not finite. These two throw Error{usage} where the rows are not at hand.
  virtual void score(std::span<const float> query, std::span<const std::int64_t> rows,
                     std::span<float> scores, std::span<std::int32_t> labels) const;

  std::int64_t size() const { return static_cast<std::int64_t>(manifest().rows); }
  /// Of queries; width() is that of the keys that are stored.
  std::int64_t query_width() const { return static_cast<std::int64_t>(manifest().query_width()); }
  std::int64_t width() const { return static_cast<std::int64_t>(manifest().width); }
  Metric metric() const { return manifest().metric; }
  /// Of all that changes what a search finds; see Manifest.
  std::string fingerprint() const { return manifest().fingerprint(); }
  /// Throws Error{bad_data} naming both fingerprints unless the store's keys are that model's and
  /// its labels that tokenizer's (hex; an empty one of either is not compared). `model_name` is for
  /// the message.
  void expect_model(const std::string& model, const std::string& tokenizer,
                    const std::string& model_name) const;

 protected:
  Store() = default;
  Store(const Store&) = default;
  Store(Store&&) = default;
  Store& operator=(const Store&) = default;
  Store& operator=(Store&&) = default;
};

}  // namespace store
