#pragma once
// Visibility in a layer with its own memory length (nn/layers/layer_memory.h, key_visibility.h).

#include <algorithm>
#include <cstdint>

#include "infer/loops/part.h"

namespace infer {

/// Appends slots for a chunk's tokens. Returns the maximum number of tokens in one of its rows.
inline std::int64_t append(PagedRows& rows, const Chunk& chunk) {
  std::int64_t longest = 0;
  for (const auto& run : chunk.runs) {
    for (std::int64_t i = 0; i < run.count; ++i) rows.append(run.row);
    longest = std::max(longest, rows.end(run.row) - rows.begin(run.row));
  }
  return longest;
}

/// Limits what a layer sees. A call sees `length` tokens before its first token and its own tokens
/// up to the query. With `same_length`, a query sees at most `length` tokens before itself.
struct LayerPast {
  std::int64_t length = 0;
  bool same_length = false;

  std::int64_t oldest(const Run& run, std::int64_t position) const {
    const auto held = std::max<std::int64_t>(0, run.call - length);
    return same_length ? std::max(held, position - length) : held;
  }
  /// Appends slots for a chunk's tokens and drops those that no later token can see. Returns the
  /// maximum number of tokens that a query sees.
  std::int64_t extend(PagedRows& rows, const Chunk& chunk) const {
    for (const auto& run : chunk.runs) rows.drop(run.row, run.call - length);
    return append(rows, chunk);
  }
};

}  // namespace infer
