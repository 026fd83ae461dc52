#pragma once
// Shares of a mixture under which a text is most probable: its log-likelihood is concave in them.

#include <vector>

#include "nn/base/torch.h"

namespace infer {

/// What the sources gave R targets.
struct ShareProblem {
  torch::Tensor p;  ///< (S, R) float64, p_joint's first
  /// (R) float64: p of the source whose share is of the whole, by bucket; undefined: there is none.
  torch::Tensor outer = {};
  torch::Tensor bucket = {};  ///< (R) int64: of its share; `buckets` where it knows nothing
  std::int64_t buckets = 0;
  std::int64_t run = 1;  ///< buckets [0, run), [run, 2 run) ...: the next in a run is like the last
  torch::Tensor weight = {};  ///< (R) float64: how much each counts, 1 on average; undefined: 1
};

struct FittedShares {
  std::vector<double> shares;  ///< (S), they sum to 1
  /// Of each bucket; where no target is of it that of the one before it in its run. Empty: none.
  std::vector<double> outer;
  double loss = 0;  ///< nats a token
};

/// What p_joint keeps at least: what no other has seen may come.
inline constexpr double kLeastJointShare = 1e-3;
inline constexpr double kMostOuterShare = 0.95;  ///< a bucket may have few targets

/// The best shares, in float64, within kLeastJointShare and kMostOuterShare: Newton's steps with
/// the curvature of the sum over all targets, under shares >= 0 (as mixsqp, Kim et al. 2020), until
/// no shares can be better by 1e-9 nats, which the gradient tells; those by bucket in turn with
/// them. Goes on from `start`, if it has shares.
FittedShares fit_shares(const ShareProblem& problem, const FittedShares& start = {});

/// Nats a token of given shares.
double share_loss(const ShareProblem& problem, const FittedShares& shares);

}  // namespace infer
