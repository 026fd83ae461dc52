#pragma once
// Weighted sums of rows of a large table: y_t = sum over j of weights_tj values_{rows_tj}.

#include "nn/base/torch.h"

namespace nn {

/// Computes the sums (T, d) for values (N, d) floating, rows (T, J) int64 from 0 to N - 1, and
/// weights (T, J) of values' type. Differentiable in values and weights. On the CPU a loop reads
/// only the named rows, and the gradient of values is sparse: these rows, added in the order of the
/// sums, bit-identical for any number of threads (row_gradient.h). Other devices use torch
/// operators, with a dense gradient.
torch::Tensor gathered_sum(const torch::Tensor& values, const torch::Tensor& rows,
                           const torch::Tensor& weights);

}  // namespace nn
