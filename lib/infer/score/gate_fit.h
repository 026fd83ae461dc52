#pragma once
// Fits gates to the scores of sources: the weights that maximise a text's probability.
// Minimises a smooth function of few variables by L-BFGS.

#include "core/base.h"
#include "nn/base/torch.h"

namespace infer {

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
