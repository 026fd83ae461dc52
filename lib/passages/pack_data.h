#pragma once
// Orders the units of a data set: the work of bm25-pack.
// Divides data into units (segments, passages, documents or pairs) and lists their terms.
// Orders units so that neighbours are similar. BM25 batches are slices of such an order.
// Represents the hits of all units as an undirected graph.

#include "core/options.h"
#include "passages/bm25_index.h"
#include "shard/dataset.h"
#include "text/tokenizer/tokenizer.h"

namespace passages {

/// A UnitOrder has every unit once. In all functions, `hits` holds the hits of all units, in order.
using UnitOrder = std::vector<std::uint32_t>;

/// Shuffles the units with the seed.
UnitOrder random_order(std::uint32_t units, std::uint64_t seed);

/// Builds the greedy chain of TRIME (Zhong, Lei and Chen 2022, algorithm 1): each unit is followed
/// by the best of its hits that is not used yet; if there is none, by the next unused unit in
/// random_order().
UnitOrder greedy_chain(const Hits& hits, std::uint64_t seed);

/// Covers the units by few paths of large weight in the graph of hits, and returns the paths in
/// sequence. The weight of an edge is the mean of its two scores. The algorithm adds edges in order
/// of weight and skips an edge that would give a unit three neighbours or close a cycle. It then
/// applies 2-opt and Or-opt moves along edges while one improves the weight (Bentley 1992, with
/// neighbour lists). The result does not depend on `jobs`. Time grows slightly faster than the
/// number of units; memory is about 500 bytes per unit at 20 hits.
UnitOrder path_cover(const Bm25& bm25, const Hits& hits, int jobs);

/// OrderWorth is the quality of an order.
struct OrderWorth {
  /// Neighbouring pairs in which one unit is a hit of the other.
  std::uint64_t links = 0;
  std::uint64_t jumps = 0;  ///< other neighbouring pairs
  double mean_score = 0;    ///< mean of Bm25::score(earlier, later) over neighbours
};
OrderWorth worth_of(const UnitOrder& order, const Bm25& bm25, const Hits& hits);

/// A HitGraph has an edge between each unit and its hits, except itself. The weight of an edge is
/// the mean of the scores of both directions.
class HitGraph {
 public:
  struct Edge {
    std::uint32_t a, b;  ///< a < b
    float weight;
  };
  HitGraph(const Bm25& bm25, const Hits& hits, int jobs);

  std::uint32_t units() const { return static_cast<std::uint32_t>(begin_.size() - 1); }
  /// Returns all edges by descending weight; ties are broken by the lower (a, b).
  const std::vector<Edge>& edges() const { return edges_; }
  /// Returns the neighbours of a unit by descending weight of the edge, which is in `score`.
  std::span<const Hit> neighbours(std::uint32_t unit) const {
    return {neighbours_.data() + begin_[unit], begin_[unit + 1] - begin_[unit]};
  }
  /// Returns the weight of an edge; 0 if there is none.
  float weight(std::uint32_t a, std::uint32_t b) const;

 private:
  std::vector<Edge> edges_;
  std::vector<std::uint64_t> begin_;
  std::vector<Hit> neighbours_;
};

/// A PackingUnit is the definition of a unit. segment: `length` consecutive tokens from the start
/// of the data, across document boundaries; the last segment is shorter. passage: `length` tokens
/// of one document (passage_index.h); 0 means the whole document. document: each document of the
/// data. pair: the target of each pair of the data.
struct PackingUnit {
  std::string name = "segment";
  std::uint64_t length = 512;
};

std::uint64_t count_units(const shard::Dataset& data, const PackingUnit& unit);

/// Returns, for each unit, the range of units, including itself, that share a document (or pair)
/// with it. Since units cross documents, two units of a range need not share a document with each
/// other.
std::vector<UnitRange> units_of_same_documents(const shard::Dataset& data, const PackingUnit& unit);

/// AnalyzedUnits is a part of the units, in order: its term strings, and each unit's list of (index
/// into `strings`, count).
struct AnalyzedUnits {
  std::vector<std::string> strings;
  std::vector<std::vector<TermCount>> lists;
};

/// Returns the terms of all units; terms are numbered in order of appearance. `progress` receives
/// the number of units done. Sets `strings`, if not null, to the terms in order of their numbers.
TermLists list_terms(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    std::uint64_t memory, const std::function<void(std::uint64_t)>& progress,
    std::vector<std::string>* strings = nullptr);

/// PackOptions says which units are ordered, and how.
struct PackOptions {
  /// segment, document, pair or auto, which means pairs for a shard of pairs, else segments.
  std::string unit = "auto";
  std::int64_t segment = 512, top = 20;
  double k1 = 0.9, b = 0.4;
  /// Excludes hits in documents that the unit overlaps.
  bool other_documents = false;
  std::string method = "greedy";  ///< greedy, paths, random
  std::int64_t buffer_size = std::int64_t{2} << 30;
  void fields(core::FieldList& f);

  bool searches() const { return method != "random"; }
};

/// PackingData is a data set with text, and its division into units.
struct PackingData {
  shard::Dataset data;
  PackingUnit unit;
  text::TokenizerPtr tokenizer;
  std::optional<std::uint32_t> end_of_document;

  std::uint64_t units() const { return count_units(data, unit); }
};
/// Opens the data. Throws Error{bad_data} for data without a tokenizer, without units, or with only
/// one document if only hits in other documents count; Error{usage} for a unit that the data does
/// not have; and as shard::Dataset does.
PackingData open_packing(const std::vector<std::string>& files, const PackOptions& options);

using PackProgress = std::function<void(std::uint64_t)>;

/// Returns the terms of the units, as list_terms() does, within
/// options.buffer_size bytes.
TermLists list_terms(
    const PackingData& in, const PackOptions& options, int jobs, const PackProgress& progress);
/// Prints one line per unit with its terms, repeated as they occur.
void print_terms(const PackingData& in, int jobs, core::ByteSink& out);

/// SearchedHits is the result of a search and its cost.
struct SearchedHits {
  std::vector<std::uint32_t> queries;
  Hits hits;                ///< in the order of the queries
  std::uint32_t parts = 1;  ///< number of parts of the index
  /// Elapsed time, and CPU time of all threads.
  double seconds = 0, cpu_seconds = 0;

  /// Returns the figures that vary between runs: queries, seconds, queries_per_s,
  /// queries_per_cpu_s.
  core::OrderedJson timings() const;
};
/// Returns the units of a part, in order. If `most` is not 0, returns `most` units drawn with the
/// seed (all units, if there are no more).
std::vector<std::uint32_t> queries_of(std::uint32_t units, const core::Part& part = {},
    std::uint64_t most = 0, std::uint64_t seed = 1);
/// Finds the options.top best units for each of `queries`, only in other documents if the options
/// say so.
SearchedHits find_hits(const PackingData& in, const Bm25& bm25, const PackOptions& options,
    std::vector<std::uint32_t> queries, int jobs, const PackProgress& progress);
/// Prints one line per hit: query, unit and score, separated by tabs.
void print_hits(const SearchedHits& found, core::ByteSink& out);

/// Packed is an order and its quality.
struct Packed {
  UnitOrder order;
  OrderWorth worth;
  double by_chance = 0;  ///< mean score of neighbours in a random order

  /// Returns units (under the plural of `name`), terms, links, jumps, bm25_of_neighbours,
  /// bm25_in_random_order, fingerprint; without links and jumps if nothing was searched.
  core::OrderedJson figures(const std::string& name, const Bm25& bm25, bool searched,
      const core::Digest& fingerprint) const;
  /// Returns the figures in one line.
  std::string summary(const std::string& name, bool searched) const;
};
/// Orders all units by options.method. `found` holds the hits of all units; null for a random
/// order. Throws Error{bad_data} if no unit is among the hits of another.
Packed pack(const PackingData& in, const Bm25& bm25, const SearchedHits* found,
    const PackOptions& options, std::uint64_t seed, int jobs);

/// Writes a shard of kind order to `out`, without committing it, and returns its fingerprint.
core::Digest write_order(const UnitOrder& order, const PackingData& in, const PackOptions& options,
    std::uint64_t seed, core::ByteSink& out);

}  // namespace passages
