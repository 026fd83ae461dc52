#pragma once
// The shares of a mixture's sources, for all tokens or for each.

#include "infer/memory/gate.h"
#include "infer/memory/memory_plan.h"

namespace infer {

/// One share: a number, or log-shares of R tokens.
struct Weight {
  double constant = 0;
  torch::Tensor log_rows = {};  ///< (R) float64 on the CPU; undefined: the constant

  bool any() const { return log_rows.defined() || constant > 0; }
  /// log_prob (R) or (R, V), weighted.
  torch::Tensor of(const torch::Tensor& log_prob) const;
  /// (R, 1) as `like`.
  torch::Tensor column(const torch::Tensor& like) const;
};

/// Of all but n-grams, which get `ngrams` of the whole where a gate gives it: (R) float64.
struct Shares {
  Weight joint, memory, cache, stores;
  std::vector<Weight> with = {};  ///< of each further model
  torch::Tensor ngrams = {};

  /// All but n-grams'.
  std::vector<Weight*> inner();
  /// The constants, by a number.
  void divide(double by);
};

/// The plan's constants; those that gates had as constants where it has gates.
Shares constant_shares(const MemoryPlan& plan);
/// As the plan's gates have them.
Shares gated_shares(const MemoryPlan& plan, const GateInputs& inputs);

}  // namespace infer
