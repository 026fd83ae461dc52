#pragma once
// p = sum over sources of weight times p_source: written once, for targets and for whole rows.

#include <string>
#include <vector>

#include "infer/sources/gate.h"
#include "infer/sources/memory_plan.h"

namespace infer {

/// What the joint softmax and the sources give, float64 on the CPU for R targets, (R, V) for rows.
struct Components {
  torch::Tensor joint;  ///< log p (R) or (R, V)
  std::vector<torch::Tensor> own =
      {};                   ///< of each weight of the plan: the same; NaN: nothing is seen
  GateInputs gates = {};    ///< undefined: there are none; `bucket` of weights by bucket
  /// As joint, of the model alone, with the parts it was trained with; undefined: it is the joint's.
  torch::Tensor head = {};
};

/// Components whose joint, own and head are what `take` gives of them; the buckets stay, the other
/// gate inputs are left out.
template <class Take>
Components taken(const Components& components, const Take& take) {
  const auto some = [&](const torch::Tensor& of) { return of.defined() ? take(of) : of; };
  Components made{some(components.joint)};
  for (const auto& own : components.own) made.own.push_back(some(own));
  made.gates.bucket = components.gates.bucket;
  made.head = some(components.head);
  return made;
}
/// The same of rows, whose buckets are taken too.
template <class Take>
Components taken_rows(const Components& components, const Take& take) {
  Components made = taken(components, take);
  if (made.gates.bucket.defined()) made.gates.bucket = take(made.gates.bucket);
  return made;
}

/// A weight: a number, or log-weights of R tokens.
struct Weight {
  double constant = 0;
  torch::Tensor log_rows = {};  ///< (R) float64 on the CPU; undefined: the constant

  bool any() const { return log_rows.defined() || constant > 0; }
  /// log_prob (R) or (R, V), weighted.
  torch::Tensor of(const torch::Tensor& log_prob) const;
  /// (R), as a tensor of R rows is.
  torch::Tensor rows(std::int64_t n) const;
};

/// The weights of a mixture of R tokens, in the order of the plan's.
struct MixtureWeights {
  Weight joint;
  Weight head = {};
  std::vector<Weight> own = {};  ///< of one by bucket: of the whole, what it leaves is the others'
};

/// Mixes by a plan's weights. A source that sees nothing gives its weight to the joint softmax.
class Mixture {
 public:
  explicit Mixture(const MemoryPlan& plan);

  /// The plan's constants; those that gates had as constants where it has gates.
  MixtureWeights constant(const GateInputs& inputs) const;
  /// As the plan's gates have them; the constants where there are none.
  MixtureWeights weights(const GateInputs& inputs) const;
  /// log p of all together, of the shape of the joint's.
  torch::Tensor mix(const Components& components, const MixtureWeights& weights) const;
  torch::Tensor mix(const Components& components) const {
    return mix(components, weights(components.gates));
  }
  /// The weight (R) that the joint softmax, and then each of the sources, had in mix(): what it
  /// gives is that times its p. float64 on the CPU.
  std::vector<torch::Tensor> given(const Components& components,
                                   const MixtureWeights& weights) const;

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
