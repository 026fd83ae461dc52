#pragma once
// Fits the weights of a mixture that maximise a text's likelihood, which is concave in them.
// Fits gates to the scores of sources: the weights that maximise a text's probability.
// Minimises a smooth function of few variables by L-BFGS.

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

/// A source with weights by bucket, fractions of what later such sources leave.
struct OuterSource {
  torch::Tensor p;       ///< (R) float64
  torch::Tensor bucket;  ///< (R) int64: index of its weight; `buckets` if the source has no entries
  std::int64_t buckets = 0;
  std::int64_t run = 1;  ///< length of a run [0, run), [run, 2 run), ... of buckets, in which each
                         ///< resembles the previous one
  /// Returns p (..., R) mixed with the source by the weights of its buckets.
  torch::Tensor mixed(const torch::Tensor& p, const std::vector<double>& weights) const;
};

/// Probabilities of R targets by the sources.
struct ShareProblem {
  torch::Tensor p;  ///< (S, R) float64, p_joint first
  std::vector<OuterSource> outer = {};
  torch::Tensor weight = {};  ///< (R) float64: weight of each target, mean 1; undefined: 1
};

struct FittedShares {
  std::vector<double> shares;  ///< (S), sum 1
  /// Weight of each bucket of each outer source; a bucket without targets gets that of its
  /// predecessor in the run.
  std::vector<std::vector<double>> outer;
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

using Numbers = std::vector<double>;

/// Returns the value at `at` and fills `gradient`, of equal length.
using Smooth = std::function<double(const Numbers& at, Numbers& gradient)>;

/// Minimises from `at`, which becomes the lowest point seen, never above the start. Deterministic
/// on machines with equal floating-point results. Returns the value there.
double minimise(const Smooth& function, Numbers& at);

/// N tokens and 1 + S sources, the rest first; all float64.
struct GateProblem {
  torch::Tensor log_p;    ///< (N, 1 + S): log p of the target; -inf if p is 0
  torch::Tensor offsets;  ///< (N, S): scores without features; -inf: weight 0
  /// (N, number of features) for each source; NaN: only the offset counts.
  std::vector<torch::Tensor> features;
  torch::Tensor weight = {};  ///< (N, 1): weight of each token, mean 1; undefined: 1
};

/// Returns the mean over tokens of -log sum_k softmax(z)_k p_k plus |w|^2 / 2N, with z_0 = 0 and
/// z_s = offset + bias_s + w_s x_s. `at` and `gradient` have the layout bias_1, w_1, bias_2, ...
double gate_objective(const GateProblem& problem, const Numbers& at, Numbers& gradient);

struct FittedGate {
  struct Row {
    double bias;
    std::vector<double> weights;
  };
  std::vector<Row> rows;  ///< for each source
  double constant_loss;   ///< nats a token with the offsets alone
  double loss;            ///< nats a token after the fit; at most constant_loss
};
/// Fits the weights from zeros on standardised features, and returns them for the original
/// features.
FittedGate fit_gate(const GateProblem& problem);

}  // namespace infer
