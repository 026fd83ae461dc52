#pragma once
// Gates fitted to what sources gave: the shares under which a text is most probable.

#include <vector>

#include "infer/score/minimise.h"
#include "infer/sources/gate.h"
#include "nn/base/torch.h"

namespace infer {

/// N tokens and 1 + S sources, the rest first; all float64.
struct GateProblem {
  torch::Tensor log_p;    ///< (N, 1 + S): of the target; where p is 0, -inf
  torch::Tensor offsets;  ///< (N, S): scores without any features; -inf: no share
  /// Of each source (N, its own); NaN: only the offset counts.
  std::vector<torch::Tensor> features;
  torch::Tensor weight = {};  ///< (N, 1): how much each counts, 1 on average; undefined: 1
};

/// The mean over tokens of -log sum_k softmax(z)_k p_k, z_0 = 0 and z_s = offset + bias_s + w_s
/// x_s, and |w|^2 / 2N. `at`: bias_1, w_1, bias_2 ...; `gradient` likewise.
double gate_objective(const GateProblem& problem, const Numbers& at, Numbers& gradient);

struct FittedGate {
  struct Row {
    double bias;
    std::vector<double> weights;
  };
  std::vector<Row> rows;  ///< of each source
  double constant_loss;   ///< nats a token with nothing but offsets
  double loss;            ///< and with these: no higher
};
/// Begins with zeros, on features of mean 0 and deviation 1, and gives the weights of those that
/// came.
FittedGate fit_gate(const GateProblem& problem);

}  // namespace infer
