#pragma once
// How far a layer with a memory length of its own sees (nn/layers/layer_memory.h, key_sight.h).

#include <algorithm>
#include <cstdint>

#include "infer/decode/paged_rows.h"
#include "infer/loops/part.h"

namespace infer {

/// Slots for a chunk's tokens. The most tokens that one of its rows holds then.
inline std::int64_t append(PagedRows& rows, const Chunk& chunk) {
  std::int64_t longest = 0;
  for (const auto& run : chunk.runs) {
    for (std::int64_t i = 0; i < run.count; ++i) rows.append(run.row);
    longest = std::max(longest, rows.end(run.row) - rows.begin(run.row));
  }
  return longest;
}

/// A call sees `length` tokens before its first and all of its own up to the query; with
/// `same_length` a query sees no more than `length` before it.
struct LayerPast {
  std::int64_t length = 0;
  bool same_length = false;

  std::int64_t oldest(const Run& run, std::int64_t position) const {
    const auto held = std::max<std::int64_t>(0, run.call - length);
    return same_length ? std::max(held, position - length) : held;
  }
  /// Slots for a chunk's tokens; what no later token sees goes. The longest sight of a query.
  std::int64_t extend(PagedRows& rows, const Chunk& chunk) const {
    for (const auto& run : chunk.runs) rows.drop(run.row, run.call - length);
    return append(rows, chunk);
  }
};

}  // namespace infer
