#pragma once
// The inner loops of exact search: products of tiles of queries and keys, tested against each
// query's threshold while they are in registers, so that no matrix of scores is ever written.

#include <cstddef>
#include <cstdint>
#include <span>

#include "store/half.h"

namespace store::exact {

extern const std::size_t kPanel;           ///< queries side by side in registers
extern const std::size_t kTile;            ///< keys of a tile
inline constexpr std::size_t kBlock = 96;  ///< keys converted at once

/// A hit: the score's order in the high half, what is smaller for later rows in the low one, so
/// that the larger number is the better hit.
using Hit = std::uint64_t;
Hit make_hit(float score, std::uint32_t row);
float score_of(Hit hit);
std::uint32_t row_of(Hit hit);

/// The hits of one query: all that were above the threshold, or the `keep` best of them. A buffer
/// that is full is cut down to its best, whose last is the new threshold.
struct Top {
  Hit* hits;
  std::uint32_t size, capacity, keep;
};
void cut(Top& top, float& threshold);

/// Keys of a block as floats; between rows a gap, so that equal places of rows do not share a set
/// of the cache.
inline std::size_t stride_of(std::size_t width) { return width + 16; }
/// (n, width) float16 -> floats (n, stride), and, unless null, half their squared lengths.
void widen_block(const Half* keys, std::size_t n, std::size_t width, float* out, float* half_norms);

/// Up to kPanel queries (n, width) as (width, kPanel), zeros behind.
void pack_panel(const float* queries, std::size_t n, std::size_t width, float* out);

/// Scores of `n` keys (at most kBlock, their memory kTile rows longer than n may say) and a panel:
/// q.k, or q.k - |k|^2 / 2 where half_norms is given. Those above thresholds (kPanel) go into
/// `tops` (kPanel) as hits of row first_row + i.
void score_block(const float* panel, const float* keys, std::size_t n, std::size_t width,
                 const float* half_norms, std::uint32_t first_row, float* thresholds, Top* tops);

/// The same for one query and n keys as they lie in the store; the same bits, too.
void score_rows(const float* query, const Half* keys, std::size_t n, std::size_t width, bool l2,
                std::uint32_t first_row, float& threshold, Top& top);

}  // namespace store::exact
