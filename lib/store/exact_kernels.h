#pragma once
// The inner loops of exact search. They compute products of tiles of queries and keys and compare
// them with each query's threshold in registers, so that no matrix of scores is ever written.

#include <cstddef>

#include "store/half.h"

namespace store::exact {

extern const std::size_t kPanel;           ///< queries processed together in registers
extern const std::size_t kTile;            ///< keys per tile
inline constexpr std::size_t kBlock = 96;  ///< keys converted at once

/// A Hit packs the score's order into the high half and the row into the low half, such that a
/// larger number is a better hit and of equal scores the smaller row is better.
using Hit = std::uint64_t;
Hit make_hit(float score, std::uint32_t row);
float score_of(Hit hit);
std::uint32_t row_of(Hit hit);

/// A Top collects the hits of one query: all above the threshold, or the `keep` best. cut() reduces
/// a full buffer to its best hits and raises the threshold to the last of them.
struct Top {
  Hit* hits;
  std::uint32_t size, capacity, keep;
};
void cut(Top& top, float& threshold);

/// Returns the row stride of a block of keys as floats. The gap between rows avoids cache-set
/// conflicts.
inline std::size_t stride_of(std::size_t width) { return width + 16; }
/// Converts float16 keys (n, width) to floats (n, stride) and, unless half_norms is null, computes
/// half their squared norms.
void widen_block(const Half* keys, std::size_t n, std::size_t width, float* out, float* half_norms);

/// Packs up to kPanel queries (n, width) as (width, kPanel), padded with zeros.
void pack_panel(const float* queries, std::size_t n, std::size_t width, float* out);

/// Scores `n` keys against a panel: q.k, or q.k - |k|^2 / 2 if half_norms is given. `n` is at most
/// kBlock, and up to kTile rows beyond `n` must be readable. Adds scores above thresholds (kPanel)
/// to `tops` (kPanel) as hits of row first_row + i.
void score_block(const float* panel, const float* keys, std::size_t n, std::size_t width,
    const float* half_norms, std::uint32_t first_row, float* thresholds, Top* tops);

/// Scores one query against n keys in the store's format; the scores are bitwise equal to those of
/// score_block().
void score_rows(const float* query, const Half* keys, std::size_t n, std::size_t width, bool l2,
    std::uint32_t first_row, float& threshold, Top& top);

}  // namespace store::exact
