#pragma once
// Products of queries (R, width) and memory entries (M, width) in float32 on the CPU. TRIME's loss
// spends most of its time on them. A call computes a part, so that threads share a product. The
// partition does not change the result bits.

#include "nn/kernels/gemm.h"

namespace nn {

/// Widths must be multiples of this number.
inline constexpr std::int64_t kEntryWidths = 16;
/// Parts of entries must begin at multiples of this number.
inline constexpr std::int64_t kEntryTile = 64;

/// Writes scores (R, M) = queries keys^T of entries [begin, end).
void entry_scores(const Matrix& queries, const Matrix& keys, std::int64_t begin, std::int64_t end,
    const MatrixOut& scores);

/// d_queries (R, width) += d (R, M) keys, for queries [begin, end).
void add_query_gradients(const Matrix& d, const Matrix& keys, std::int64_t begin, std::int64_t end,
    const MatrixOut& d_queries);

/// d_keys (M, width) += d^T queries, for entries [begin, end).
void add_entry_gradients(const Matrix& d, const Matrix& queries, std::int64_t begin,
    std::int64_t end, const MatrixOut& d_keys);

}  // namespace nn
