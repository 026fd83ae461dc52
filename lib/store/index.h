#pragma once
// An approximate index of a store's keys: a FAISS index of any factory string. No other code uses
// FAISS.

#include "store/manifest.h"

namespace store {

/// Returns the indexes that a store without a chosen index tries in turn until one has a recall of
/// kEnoughRecall: none but exact for few rows, else inverted lists with ever larger codes, and
/// exact at last. A store that does not keep its keys has codes of 8 bits in place of exact for few
/// rows, and no exact index.
std::vector<std::string> index_choices(
    std::uint64_t rows, std::uint64_t width, bool keeps_keys = true);
/// Returns the first of index_choices().
std::string default_index(std::uint64_t rows, std::uint64_t width, bool keeps_keys = true);
/// An index that finds a smaller fraction of the nearest keys impairs all results that use it.
inline constexpr double kEnoughRecall = 0.9;

/// An Index holds the rows of a store under their row numbers. Const members are thread safe,
/// others are not. Throws Error{unavailable} in a build without FAISS.
class Index {
 public:
  /// Makes an untrained index. Throws Error{usage} for a factory string that FAISS refuses for this
  /// width, and for a type of index that check_index_bytes() (index_bytes.h) could not check when
  /// it is read.
  static std::unique_ptr<Index> make(
      const std::string& factory, std::uint64_t width, Metric metric);
  /// Parses the bytes of index.faiss, which are untrusted. Throws Error{bad_data}, naming `origin`,
  /// unless they are an index of this width, metric and number of rows.
  static std::unique_ptr<Index> parse(std::span<const std::byte> bytes, const std::string& origin,
      std::uint64_t width, Metric metric, std::uint64_t rows);
  virtual ~Index() = default;

  /// Returns the largest number of rows that training uses.
  virtual std::uint64_t training_rows() const = 0;
  /// Trains on keys (n, width). Throws Error{bad_data} if there are too few.
  virtual void train(std::span<const float> keys) = 0;
  /// Appends keys (n, width) as rows size() to size() + n - 1.
  virtual void add(std::span<const float> keys) = 0;
  virtual std::uint64_t size() const = 0;
  /// Removes all rows but keeps the trained state.
  virtual void reset() = 0;
  /// Removes rows and renumbers the others, as if the removed rows had never existed. `gone` has
  /// one flag per row. Returns false if this type of index cannot remove rows.
  virtual bool remove(const std::vector<bool>& gone) = 0;

  /// Finds the k nearest rows for queries (n, width), nearest first: ids and scores (n, k). Missing
  /// hits have id -1 and score -infinity. `nprobe` is the number of inverted lists to search (for
  /// HNSW: efSearch, at least k). Thread safe; concurrent calls wait for each other.
  virtual void search(std::span<const float> queries, std::int64_t k, std::int64_t nprobe,
      std::span<std::int64_t> ids, std::span<float> scores) const = 0;

  /// Writes the index through core::Output and returns the XXH3-128 of the file's bytes.
  virtual core::Digest write(const std::string& path) const = 0;
};

}  // namespace store
