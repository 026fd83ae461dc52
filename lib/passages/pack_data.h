#pragma once
// From a data set to an order of its units: bm25-pack's work.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "core/json.h"
#include "core/launcher.h"
#include "core/options.h"
#include "passages/bm25.h"
#include "passages/packing.h"
#include "passages/packing_units.h"
#include "passages/term_lists.h"
#include "shard/dataset.h"
#include "text/tokenizer/tokenizer.h"

namespace passages {

struct PackOptions {
  std::string unit = "auto";  ///< segment, document, pair; auto: pairs of a shard of pairs, else
                              ///< segments
  std::int64_t segment = 512, top = 20;
  double k1 = 0.9, b = 0.4;
  bool other_documents = false;   ///< hits are of documents that the unit has no part of
  std::string method = "greedy";  ///< greedy, paths (packing.h), random
  std::int64_t buffer_size = std::int64_t{2} << 30;
  void fields(core::FieldList& f);

  bool searches() const { return method != "random"; }
};

/// Shards that have text, and the units they are cut into.
struct PackingData {
  shard::Dataset data;
  PackingUnit unit;
  text::TokenizerPtr tokenizer;
  std::optional<std::uint32_t> end_of_document;

  std::uint64_t units() const { return count_units(data, unit); }
};
/// Throws Error{bad_data} for data without a tokenizer, units, or other documents where only these
/// count, Error{usage} for units that they
/// have not, and as shard::Dataset does.
PackingData open_packing(const std::vector<std::string>& files, const PackOptions& options);

using PackProgress = std::function<void(std::uint64_t)>;

/// The units' terms, as list_terms() gives them; within options.buffer_size bytes.
TermLists list_terms(const PackingData& in, const PackOptions& options, int jobs,
                     const PackProgress& progress);
/// A line of terms for each unit, as often as they stand there.
void print_terms(const PackingData& in, int jobs, core::ByteSink& out);

/// What a search found, and what it took.
struct Found {
  std::vector<std::uint32_t> queries;
  Hits hits;                            ///< of the queries, in their order
  std::uint32_t parts = 1;              ///< of the index
  double seconds = 0, cpu_seconds = 0;  ///< by the clock; of all threads

  /// What depends on the clock: queries, seconds, queries_per_s, queries_per_cpu_s.
  core::OrderedJson timings() const;
};
/// The units of a part, in their order; where `most` is not 0, so many of all units (or all, where
/// there are no more), drawn by the seed.
std::vector<std::uint32_t> queries_of(std::uint32_t units, const core::Part& part = {},
                                      std::uint64_t most = 0, std::uint64_t seed = 1);
/// The options.top best units of each of `queries`, of other documents where options say so.
Found find_hits(const PackingData& in, const Bm25& bm25, const PackOptions& options,
                std::vector<std::uint32_t> queries, int jobs, const PackProgress& progress);
/// A line for each hit: query, unit and score with tabs between.
void print_hits(const Found& found, core::ByteSink& out);

/// An order and what it is worth.
struct Packed {
  UnitOrder order;
  OrderWorth worth;
  double by_chance = 0;  ///< mean score of neighbours in a random order

  /// NAMEs, terms, links, jumps, bm25_of_neighbours, bm25_in_random_order, fingerprint; without
  /// links and jumps where nothing was searched.
  core::OrderedJson figures(const std::string& name, const Bm25& bm25, bool searched,
                            const core::Digest& fingerprint) const;
  std::string summary(const std::string& name, bool searched) const;  ///< the same in a line
};
/// Orders all units by options.method; `found`: of all of them, null for a random order. Throws
/// Error{bad_data} where not one is among the hits of another.
Packed pack(const PackingData& in, const Bm25& bm25, const Found* found, const PackOptions& options,
            std::uint64_t seed, int jobs);

/// Writes a shard of kind order to `out`, which is not committed. Returns its fingerprint.
core::Digest write_order(const UnitOrder& order, const PackingData& in, const PackOptions& options,
                         std::uint64_t seed, core::ByteSink& out);

}  // namespace passages
