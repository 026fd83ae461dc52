#pragma once
// Products of queries (R, width) and a memory's entries (M, width) in float32 on the CPU: what
// TRIME's loss spends its time on. A call does a part, so that threads share a product; which part
// is whose does not change a bit.

#include <cstdint>

#include "nn/kernels/gemm.h"

namespace nn {

/// Widths are multiples of this.
inline constexpr std::int64_t kEntryWidths = 16;
/// Parts of entries begin at multiples of this.
inline constexpr std::int64_t kEntryTile = 64;

/// scores (R, M) = queries keys^T, of entries [begin, end).
void entry_scores(const Matrix& queries, const Matrix& keys, std::int64_t begin, std::int64_t end,
                  const MatrixOut& scores);

/// d_queries (R, width) += d (R, M) keys, of queries [begin, end).
void add_query_gradients(const Matrix& d, const Matrix& keys, std::int64_t begin, std::int64_t end,
                         const MatrixOut& d_queries);

/// d_keys (M, width) += d^T queries, of entries [begin, end).
void add_entry_gradients(const Matrix& d, const Matrix& queries, std::int64_t begin,
                         std::int64_t end, const MatrixOut& d_keys);

}  // namespace nn
