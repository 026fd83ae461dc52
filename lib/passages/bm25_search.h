#pragma once
// The best units for each of many queries that are units themselves.

#include <cstdint>
#include <functional>
#include <span>

#include "passages/bm25.h"

namespace passages {

struct SearchOptions {
  std::uint32_t top = 20;
  int jobs = 1;
  std::uint64_t memory = std::uint64_t{1} << 31;  ///< of the index, in bytes
  /// Of each unit of the index, the units that are no answer to it. Empty: every unit is one.
  std::span<const UnitRange> without = {};
};

/// The options.top best units of each of `queries`, itself among them unless `without` says
/// otherwise: exact, the scores those of
/// Bm25::score to the rounding of floats, and the same whatever jobs and memory. An index of more
/// than `memory` bytes is made and searched part by part. Beside it each thread takes a few MiB.
/// `progress` is told how many queries are done (of queries.size() times the parts), from any
/// thread but one at a time; `parts`, if not null, how many parts there were.
Hits search(const Bm25& bm25, std::span<const std::uint32_t> queries, const SearchOptions& options,
            const std::function<void(std::uint64_t)>& progress, std::uint32_t* parts = nullptr);

}  // namespace passages
