#pragma once
// In-place softmax over rows of scores, common to all heads.

#include "nn/ops/host_loops.h"

namespace nn {

/// Result of row_softmax_ for R rows of n scores.
struct RowSoftmax {
  torch::Tensor exp;       ///< (R, n): exp(score - the row's maximum), in the memory of the scores
  torch::Tensor sum;       ///< (R): sum of `exp`
  torch::Tensor log_z;     ///< (R): log-sum-exp of the scores
  torch::Tensor log_prob;  ///< (R): score of the target - log_z
};

/// Overwrites scores (R, n), float32 or float64, with contiguous rows; targets (R) int64 on the
/// scores' device. On the CPU each row is read from memory once.
RowSoftmax row_softmax_(torch::Tensor scores, const torch::Tensor& targets);

/// Returns dL/df (R, d) and adds to d_weight (n, d), for scores = f weight^T, without changing
/// `exp`:
///   dL/d score_rj = d_log_prob_r [j = target_r] + (d_log_z_r - d_log_prob_r) exp_rj / sum_r
/// `from` is the column of `exp` for weight's row 0; targets outside weight's rows are ignored.
torch::Tensor row_softmax_backward(const RowSoftmax& softmax, const torch::Tensor& f,
    const torch::Tensor& weight, std::int64_t from, const torch::Tensor& targets,
    const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z, torch::Tensor& d_weight);

/// Adds to d_bias (n) the sum of the scores' gradients over the rows, for scores = ... + bias;
/// `from` and targets as above.
void row_bias_backward(const RowSoftmax& softmax, std::int64_t from, const torch::Tensor& targets,
    const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z, torch::Tensor& d_bias);

}  // namespace nn
