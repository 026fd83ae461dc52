#pragma once
// Scores units against units by BM25 (Robertson et al. 1994) with Lucene's idf:
//
//   score(q, d) = sum over term occurrences t of q of idf(t) impact(t, d)
//   idf(t)       = ln(1 + (N - n_t + 0.5) / (n_t + 0.5))
//   impact(t, d) = f / (f + k1 (1 - b + b length(d) / average length))
//
// N is the number of units, n_t the number of units with t, f the frequency of t in d. Kamphuis et
// al. 2020 call this variant "Lucene (accurate)".

#include <cstdint>
#include <span>
#include <vector>

#include "passages/term_lists.h"

namespace passages {

struct Bm25Options {
  double k1 = 0.9, b = 0.4;
};

/// A Bm25 computes the parts of the formula. `lists` must outlive it. Thread safe.
class Bm25 {
 public:
  Bm25(const TermLists& lists, const Bm25Options& options);
  const TermLists& lists() const { return lists_; }
  float idf(std::uint32_t term) const { return idf_[term]; }
  std::span<const float> idf() const { return idf_; }
  /// Returns k1 (1 - b + b length / average length) of a unit.
  float norm(std::uint32_t unit) const {
    return static_cast<float>(base_ + per_term_ * lists_.length(unit));
  }
  static float impact(std::uint32_t count, float norm) {
    const auto f = static_cast<float>(count);
    return f / (f + norm);
  }
  /// Returns the score of a single pair.
  double score(std::uint32_t query, std::uint32_t unit) const;

 private:
  const TermLists& lists_;
  double base_, per_term_;
  std::vector<float> idf_;
};

/// A Hit is a unit with its score.
struct Hit {
  std::uint32_t unit;
  float score;
  bool operator==(const Hit&) const = default;
  /// Orders hits by descending score; ties are broken by the lower number.
  bool operator<(const Hit& other) const {
    return score != other.score ? score > other.score : unit < other.unit;
  }
};

/// A UnitRange is the units [begin, end).
struct UnitRange {
  std::uint32_t begin, end;
};

/// Hits holds the best units of each query.
class Hits {
 public:
  Hits(std::uint32_t queries, std::uint32_t top)
      : top_(top), count_(queries), hits_(std::size_t{queries} * top) {}
  std::uint32_t queries() const { return static_cast<std::uint32_t>(count_.size()); }
  std::uint32_t top() const { return top_; }
  /// Returns the hits of a query, best first: at most top(), all with scores above 0.
  std::span<const Hit> of(std::uint32_t query) const {
    return {hits_.data() + std::size_t{query} * top_, count_[query]};
  }
  /// Sets the hits of a query; `best` has at most top() elements.
  void set(std::uint32_t query, std::span<const Hit> best);

 private:
  std::uint32_t top_;
  std::vector<std::uint32_t> count_;
  std::vector<Hit> hits_;
};

}  // namespace passages
