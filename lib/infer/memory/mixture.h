#pragma once
// The mixture p = sum over sources of weight times p_source, for targets and for whole rows.

#include "infer/sources/memory_plan.h"

namespace infer {

/// Distributions of the joint softmax and of the sources, float64 on the CPU, (R) for targets or
/// (R, V) for all tokens.
struct Components {
  torch::Tensor joint;  ///< log p, (R) or (R, V)
  /// For each weight of the plan, in the shape of joint; NaN: no entries.
  std::vector<torch::Tensor> separate = {};
  GateInputs gates = {};  ///< undefined: no gates; `buckets` for weights by bucket
  /// Log p of the model alone with its trained parts, as joint; undefined: equal to joint.
  torch::Tensor head = {};
};

/// Applies `take` to joint, separate and head. Keeps the buckets and drops the other gate inputs.
template <class Take> Components taken(const Components& components, const Take& take) {
  const auto some = [&](const torch::Tensor& of) { return of.defined() ? take(of) : of; };
  Components made{some(components.joint)};
  for (const auto& own : components.separate) made.separate.push_back(some(own));
  made.gates.buckets = components.gates.buckets;
  made.head = some(components.head);
  return made;
}
/// Applies `take` to the buckets as well, for a selection of rows.
template <class Take> Components taken_rows(const Components& components, const Take& take) {
  Components made = taken(components, take);
  for (auto& [kind, bucket] : made.gates.buckets) bucket = take(bucket);
  return made;
}

/// A weight: a constant, or log-weights of R tokens.
struct Weight {
  double constant = 0;
  torch::Tensor log_rows = {};  ///< (R) float64 on the CPU; undefined: the constant

  bool any() const { return log_rows.defined() || constant > 0; }
  /// Returns the weighted log_prob, (R) or (R, V).
  torch::Tensor of(const torch::Tensor& log_prob) const;
  /// Returns the weight as a tensor (n).
  torch::Tensor rows(std::int64_t n) const;
};

/// Weights of a mixture for R tokens, in the order of the plan.
struct MixtureWeights {
  Weight joint;
  Weight head = {};
  /// A weight by bucket is a fraction of what later ones leave; the others divide the rest.
  std::vector<Weight> separate = {};
};

/// Mixes distributions by a plan's weights. A source without entries adds its weight to the joint
/// softmax.
class Mixture {
 public:
  explicit Mixture(const MemoryPlan& plan);

  /// Returns the plan's constant weights; for gated sources, the constants of their gates.
  MixtureWeights constant(const GateInputs& inputs) const;
  /// Returns the weights from the plan's gates; the constants without gates.
  MixtureWeights weights(const GateInputs& inputs) const;
  /// Returns log p of the mixture, in the shape of components.joint.
  torch::Tensor mix(const Components& components, const MixtureWeights& weights) const;
  /// Returns the effective weights (R) in mix(), of the joint softmax, then of each source, float64
  /// on the CPU. A component's contribution is its weight times its p.
  std::vector<torch::Tensor> given(
      const Components& components, const MixtureWeights& weights) const;

  std::size_t size() const { return weights_.size(); }
  const std::string& kind(std::size_t i) const { return weights_[i].kind; }
  bool by_bucket(std::size_t i) const { return weights_[i].values.size() > 1; }
  bool gated(std::size_t i) const { return weights_[i].gated; }
  const std::vector<double>& constants(std::size_t i) const { return weights_[i].values; }

 private:
  struct Own {
    std::string kind;
    std::vector<double> values;
    bool gated;
  };
  std::vector<Own> weights_;
  GatePlan gates_;
};

}  // namespace infer
