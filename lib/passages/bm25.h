#pragma once
// Scores units against units by BM25 (Robertson et al. 1994) with Lucene's idf:
//
//   score(q, d) = sum over term occurrences t of q of idf(t) impact(t, d)
//   idf(t)       = ln(1 + (N - n_t + 0.5) / (n_t + 0.5))
//   impact(t, d) = f / (f + k1 (1 - b + b length(d) / average length))
//
// N is the number of units, n_t the number of units with t, f the frequency of t in d. Kamphuis et
// al. 2020 call this variant "Lucene (accurate)".
// Lists the terms of each unit of a data set (a segment, a document) with their counts, for BM25.

#include "core/unnamed_file.h"

namespace passages {

/// A TermCount is a term's number and its count in a unit.
struct TermCount {
  std::uint32_t term, count;
  bool operator==(const TermCount&) const = default;
};

/// TermLists holds the terms of the units, in the order of the units, and counts over all units.
/// Memory: 12 bytes per unit and 4 per term. The lists take 8 bytes per entry; beyond `memory`
/// bytes they are on disk.
class TermLists {
 public:
  explicit TermLists(std::uint64_t memory = std::uint64_t{1} << 62) : lists_(memory) {}

  /// Adds the next unit's terms, each once and with a count > 0; sorts them by number. Throws
  /// Error{bad_data} beyond 2^31 units.
  void add(std::vector<TermCount>& terms);
  /// Ends the adding of units.
  void finish() { lists_.finish(); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(length_.size()); }
  /// Returns the highest number of a term + 1.
  std::uint32_t terms() const { return static_cast<std::uint32_t>(units_with_.size()); }
  /// Returns the unit's terms, ascending by number. Requires finish(), as do the functions below.
  std::span<const TermCount> list(std::uint32_t unit) const {
    return lists_.slice(begin_[unit], begin_[unit + 1]);
  }
  /// Returns the number of entries in the lists before this unit's.
  std::uint64_t begin(std::uint32_t unit) const { return begin_[unit]; }
  /// Returns the number of term occurrences of a unit.
  std::uint32_t length(std::uint32_t unit) const { return length_[unit]; }
  double average_length() const { return length_.empty() ? 0.0 : total_ / length_.size(); }
  /// Returns the number of units that have the term.
  std::uint32_t units_with(std::uint32_t term) const { return units_with_[term]; }
  bool spilled() const { return lists_.spilled(); }

 private:
  core::SpillArray<TermCount> lists_;
  std::vector<std::uint64_t> begin_ = {0};
  std::vector<std::uint32_t> length_, units_with_;
  double total_ = 0;
};

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
