#pragma once
// A softmax over rows of scores, in place: the arithmetic that all heads share.

#include "nn/base/torch.h"
namespace nn {

/// What row_softmax_ leaves of R rows of n scores.
struct RowSoftmax {
  torch::Tensor exp;       ///< (R, n): exp(score - the row's maximum), in the memory of the scores
  torch::Tensor sum;       ///< (R): sum of `exp`
  torch::Tensor log_z;     ///< (R): log-sum-exp of the scores
  torch::Tensor log_prob;  ///< (R): score of the target - log_z
};

/// scores (R, n) float32 or float64, rows contiguous, overwritten; targets (R) int64 on their
/// device. On the CPU a row is read from memory once.
RowSoftmax row_softmax_(torch::Tensor scores, const torch::Tensor& targets);

/// Adds to d_weight (n, d) and returns dL/df (R, d), for scores = f weight^T, without touching
/// `exp`, where
///   dL/d score_rj = d_log_prob_r [j = target_r] + (d_log_z_r - d_log_prob_r) exp_rj / sum_r
/// `from` is the first column of `exp` that weight's row 0 stands for; targets outside weight's
/// rows are left out.
torch::Tensor row_softmax_backward(const RowSoftmax& softmax, const torch::Tensor& f,
                                   const torch::Tensor& weight, std::int64_t from,
                                   const torch::Tensor& targets, const torch::Tensor& d_log_prob,
                                   const torch::Tensor& d_log_z, torch::Tensor& d_weight);

/// Adds to d_bias (n) what the gradients of those scores sum to over the rows, for scores = ... +
/// bias; `from` and targets as above.
void row_bias_backward(const RowSoftmax& softmax, std::int64_t from, const torch::Tensor& targets,
                       const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
                       torch::Tensor& d_bias);

/// float32 for bfloat16 and half weights, else the weights' own type.
torch::ScalarType accumulation_type(const torch::Tensor& weight);

}  // namespace nn
