#pragma once
// Weighted sums of rows of a large table, and their gradients, which touch only the rows that are
// used.
//
//  y_t = sum over j < entries of weights_tj values_{rows_tj}
//
// All arrays are contiguous. Each function computes a part. The partition does not change the
// result bits.

#include <cstdint>

namespace nn {

template <class Real> struct GatheredSum {
  std::int64_t entries, width;
  const Real* values;        // (N, width)
  const std::int64_t* rows;  // (T, entries), each in [0, N)
  const Real* weights;       // (T, entries)
};

/// Writes the sums [begin, end) of y (T, width).
template <class Real>
void gathered_sum_forward(
    const GatheredSum<Real>& in, std::int64_t begin, std::int64_t end, Real* y);

/// Writes the part [begin, end) of d_weights (T, entries) from d_y (T, width).
template <class Real>
void gathered_sum_weight_gradient(const GatheredSum<Real>& in, const Real* d_y, std::int64_t begin,
    std::int64_t end, Real* d_weights);

/// `order` (T entries): the entries' numbers t entries + j, those that name the same row one behind
/// the other, from starts[r] to starts[r + 1] those of the r-th row used. Adds the gradient of the
/// rows used [begin, end) to d_values (rows used, width), in the order given. Reads no values.
template <class Real>
void gathered_sum_value_gradient(const GatheredSum<Real>& in, const Real* d_y,
    const std::int64_t* order, const std::int64_t* starts, std::int64_t begin, std::int64_t end,
    Real* d_values);

}  // namespace nn
