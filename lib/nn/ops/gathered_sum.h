#pragma once
// Weighted sums of rows of a large table: y_t = sum over j of weights_tj values_{rows_tj}.

#include "nn/base/torch.h"

namespace nn {

/// values (N, d) floating, rows (T, J) int64 of 0 to N - 1, weights (T, J) of values' type -> (T,
/// d). Differentiable in values and weights. On the CPU a loop of ours that reads the rows named
/// and no other; the gradient of values is a dense tensor of zeros in which only these rows are
/// written, each in the order of the sums, so that it has the same bits for any number of threads.
/// Elsewhere torch's operators.
torch::Tensor gathered_sum(const torch::Tensor& values, const torch::Tensor& rows,
                           const torch::Tensor& weights);

}  // namespace nn
