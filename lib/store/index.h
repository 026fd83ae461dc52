#pragma once
// An approximate index of a store's keys: FAISS's, of any factory string, and the only place that
// knows FAISS.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/manifest.h"

namespace store {

/// The index that suits N rows: exact for few, else inverted lists of products of 4-bit codes.
std::string default_index(std::uint64_t rows, std::uint64_t width);

/// Row r of the store is number r here. Not thread safe, but for const members. Throws
/// Error{unavailable} where the build has no FAISS.
class Index {
 public:
  /// Throws Error{usage} for a factory string that FAISS does not take for this width, or for a
  /// type of index that could not be checked when it is read (index_bytes.h).
  static std::unique_ptr<Index> make(const std::string& factory, std::uint64_t width,
                                     Metric metric);
  /// From the bytes of index.faiss, of which nothing is believed. Throws Error{bad_data} naming
  /// `origin` if they are no index of this width, metric and number of rows.
  static std::unique_ptr<Index> parse(std::span<const std::byte> bytes, const std::string& origin,
                                      std::uint64_t width, Metric metric, std::uint64_t rows);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  /// How many rows training wants at most.
  std::uint64_t training_rows() const;
  bool trained() const;
  /// keys (n, width). Throws Error{bad_data} if they are too few for it.
  void train(std::span<const float> keys);
  /// Rows size() .. size() + n.
  void add(std::span<const float> keys);
  std::uint64_t size() const;
  /// Forgets all rows, keeps what training learned.
  void reset();
  /// Takes rows out and numbers the others anew, as if they had never been there: `gone` has a
  /// flag a row. False if this type of index cannot.
  bool remove(const std::vector<bool>& gone);

  /// queries (n, width) -> ids and scores (n, k), the nearest first; where there are fewer, id -1
  /// and score -infinity. `nprobe`: inverted lists to look into (HNSW: its efSearch, at least k).
  /// Thread safe: calls wait for each other.
  void search(std::span<const float> queries, std::int64_t k, std::int64_t nprobe,
              std::span<std::int64_t> ids, std::span<float> scores) const;

  /// Whole or not at all. Returns the XXH3-128 of the file's bytes.
  core::Digest write(const std::string& path) const;

 private:
  struct Impl;
  explicit Index(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace store
