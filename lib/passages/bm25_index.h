#pragma once
// An inverted index of a range of units, laid out for the search of many long queries.
// Searches blocks of the index for the best units of queries, which are lists of terms.
// Finds the best units for many queries that are units themselves.
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
#include "passages/bm25_kernels.h"

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

/// TermKinds classifies terms. A frequent term is a row of impacts for all units; any other term is
/// a list of (unit, impact). The classification depends on all units, not only the indexed ones, so
/// that scores do not depend on the division into blocks.
class TermKinds {
 public:
  explicit TermKinds(const TermLists& lists);
  static constexpr std::uint32_t kSparse = 0xFFFFFFFF;
  /// Returns the row of a term, or kSparse.
  std::uint32_t row(std::uint32_t term) const { return row_[term]; }
  std::uint32_t rows() const { return rows_; }
  /// Returns the row of each term.
  std::span<const std::uint32_t> row_of_terms() const { return row_; }

 private:
  std::vector<std::uint32_t> row_;
  std::uint32_t rows_ = 0;
};

/// A BlockView is up to kUnits consecutive units in searchable form; others own its arrays.
struct BlockView {
  /// The most units of a block, so that local numbers fit in 16 bits, and the scores of several
  /// queries and the postings of a term stay in the caches.
  static constexpr std::uint32_t kUnits = 16384;
  static constexpr std::uint32_t kTiles = kUnits / kTile;

  /// first: the first unit; tiles: number of tiles of kTile units.
  std::uint32_t first = 0, tiles = 0;
  std::size_t tile_floats = 0;           ///< TermKinds::rows() * kTile
  std::span<const std::uint32_t> begin;  ///< offset of each term's postings, and the end
  std::span<const std::uint16_t> units;  ///< unit of each posting, minus first
  std::span<const float> impacts;        ///< impact of each posting
  /// Shape (tiles, TermKinds::rows(), kTile), aligned to 64 bytes.
  std::span<const float> rows;

  /// Calls add_postings() for a sparse term; scores (tiles * kTile).
  void add(std::uint32_t term, float weight, float* scores) const {
    const auto from = begin[term];
    add_postings(
        units.data() + from, impacts.data() + from, begin[term + 1] - from, weight, scores);
  }
  /// Prefetches the first postings of a term before add().
  void prefetch(std::uint32_t term) const {
    const auto from = begin[term];
    for (std::size_t line = 0; line < 2; ++line)
      __builtin_prefetch(units.data() + from + line * 32);
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(impacts.data() + from + line * 16);
  }
  /// Returns the rows of a tile.
  const float* tile(std::uint32_t number) const { return rows.data() + number * tile_floats; }
};

/// An IndexBlock is a block in memory.
class IndexBlock {
 public:
  /// Indexes the units [first, last), at most BlockView::kUnits.
  IndexBlock(const Bm25& bm25, const TermKinds& kinds, std::uint32_t first, std::uint32_t last);
  BlockView view() const {
    const float* const rows = rows_.size() > 0 ? &rows_[0] : nullptr;
    return {first_, tiles_, tile_floats_, begin_, units_, impacts_, {rows, rows_.size()}};
  }

  /// Returns the memory in bytes of a block of the units [first, last).
  static std::uint64_t bytes(
      const TermLists& lists, const TermKinds& kinds, std::uint32_t first, std::uint32_t last);

 private:
  std::uint32_t first_, tiles_;
  std::size_t tile_floats_;
  std::vector<std::uint32_t> begin_;  // offset of each term's postings, and the end
  std::vector<std::uint16_t> units_;  // minus first_
  std::vector<float> impacts_;
  core::HugeArray<float> rows_;
};

/// A Bm25Query is one query; the caller keeps the terms and ranges alive.
struct Bm25Query {
  std::span<const TermCount> terms;         ///< each below the number of terms of the index
  std::span<const UnitRange> without = {};  ///< units that are excluded from the answer
};

/// A BlockSearcher searches a batch of queries in a block of the index while the block is in the
/// cache. Each thread needs its own.
class BlockSearcher {
 public:
  static constexpr std::size_t kBatch = 128;

  /// `idf` holds the idf of each term, and `row` its row in the blocks or TermKinds::kSparse; both
  /// must outlive the searcher.
  BlockSearcher(std::span<const float> idf, std::span<const std::uint32_t> row, std::uint32_t top);

  /// Merges into `hits`, from first_query on, the best units of the blocks for each of at most
  /// kBatch queries.
  void search(std::span<const BlockView> blocks, std::span<const Bm25Query> queries,
      std::uint32_t first_query, Hits& hits);

 private:
  struct SparseTerm {
    std::uint32_t term;
    float weight;
  };
  struct Query {
    std::vector<SparseTerm> sparse;
    std::vector<DenseTerm> dense;
    std::span<const UnitRange> without;
    std::vector<Hit> best;  // the best so far, in any order
    float threshold = 0;    // the lowest score that enters `best`
  };
  static constexpr std::size_t kGroup = 8;  // number of queries whose scores fit in the cache

  void prepare(Query& query, const Bm25Query& asked, std::span<const Hit> best) const;
  void score(const BlockView& block, std::span<Query> queries);
  void select(
      const BlockView& block, std::span<const float> highest, const float* scores, Query& query);

  std::span<const float> idf_;
  std::span<const std::uint32_t> row_;
  std::uint32_t top_;
  std::vector<Query> queries_;
  core::HugeArray<float> scores_;  // shape (kGroup, BlockView::kUnits)
  float highest_[kGroup][BlockView::kTiles];
  std::vector<float> order_;
};

/// SearchOptions holds the parameters of a search.
struct SearchOptions {
  std::uint32_t top = 20;
  int jobs = 1;
  std::uint64_t memory = std::uint64_t{1} << 31;  ///< limit for the index, in bytes
  /// For each unit, the units excluded from its answer. Empty: none is excluded.
  std::span<const UnitRange> without = {};
};

/// Finds the options.top best units for each of `queries`; the answer includes the query itself
/// unless `without` excludes it. The search is exact: scores equal those of Bm25::score up to float
/// rounding, and do not depend on jobs and memory. If the index exceeds `memory` bytes, it is made
/// and searched in parts. Each thread takes a few MiB in addition. `progress` receives the number
/// of queries done (out of queries.size() times the number of parts), from any thread but never
/// concurrently. Sets `parts`, if not null, to the number of parts.
Hits search(const Bm25& bm25, std::span<const std::uint32_t> queries, const SearchOptions& options,
    const std::function<void(std::uint64_t)>& progress, std::uint32_t* parts = nullptr);

}  // namespace passages
