#pragma once
// Finds the best units for many queries that are units themselves.

#include <cstdint>
#include <functional>
#include <span>

#include "passages/bm25.h"

namespace passages {

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
