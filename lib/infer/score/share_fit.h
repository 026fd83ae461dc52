#pragma once
// Fits the weights of a mixture that maximise a text's likelihood, which is concave in them.

#include "core/base.h"
#include "nn/base/torch.h"

namespace infer {

// Weights of tokens, for protocols that discount some windows. Undefined: all weights are 1.
/// Returns values times weights; the shapes must broadcast.
inline torch::Tensor weighted(const torch::Tensor& values, const torch::Tensor& weight) {
  return weight.defined() ? values * weight : values;
}

/// Returns the weights scaled to mean 1.
inline torch::Tensor even(const torch::Tensor& weight) {
  return weight.defined() ? weight / weight.mean() : weight;
}

/// Probabilities of R targets by the sources.
struct ShareProblem {
  torch::Tensor p;  ///< (S, R) float64, p_joint first
  /// (R) float64: p of the source with weights by bucket, as fractions of the whole; undefined:
  /// none.
  torch::Tensor outer = {};
  torch::Tensor bucket = {};  ///< (R) int64: index of its weight; `buckets` if the source has no
                              ///< entries
  std::int64_t buckets = 0;
  std::int64_t run = 1;  ///< length of a run [0, run), [run, 2 run), ... of buckets, in which each
                         ///< resembles the previous one
  torch::Tensor weight = {};  ///< (R) float64: weight of each target, mean 1; undefined: 1
};

struct FittedShares {
  std::vector<double> shares;  ///< (S), sum 1
  /// Weight of each bucket; a bucket without targets gets that of its predecessor in the run.
  /// Empty: no such source.
  std::vector<double> outer;
  double loss = 0;  ///< nats a token
};

/// Minimum weight of p_joint, for tokens that no other source has seen.
inline constexpr double kLeastJointShare = 1e-3;
inline constexpr double kMostOuterShare = 0.95;  ///< maximum weight of a bucket, because a bucket
                                                 ///< may have few targets

/// Returns the best weights, in float64, within kLeastJointShare and kMostOuterShare. Uses Newton's
/// method under weights >= 0 with the Hessian over all targets (as mixsqp, Kim et al. 2020),
/// alternating with the bucket weights, until the gradient bounds the possible gain by 1e-9 nats.
/// Starts from `start` if it has weights.
FittedShares fit_shares(const ShareProblem& problem, const FittedShares& start = {});

/// Returns the nats a token of given weights.
double share_loss(const ShareProblem& problem, const FittedShares& shares);

}  // namespace infer
