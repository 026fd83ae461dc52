#pragma once
// The mixture p = sum over sources of weight times p_source, for targets and for whole rows.
// Online learning of mixture weights from the past tokens of a stream.

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

/// Tracks the best constant mixture of n sources. For p_i, the probability of the observed token by
/// each source, and p by the mixture, Soft-Bayes (Orseau, Lattimore and Legg 2017) replaces each
/// weight w by
///   w (1 - e + e p_i / p)
/// and pulls it towards its initial value by the relative decrease of the rate e. The rate after t
/// tokens is e_t = sqrt(log n / (2 n t)), at most 1/2. The regret in nats against the best constant
/// mixture is O(sqrt(n t log n)).
class SoftBayes {
 public:
  explicit SoftBayes(std::vector<double> first) : first_(std::move(first)), weights_(first_) {}
  std::span<const double> weights() const { return weights_; }
  /// Updates the weights with p of each source; at least one is positive.
  void learn(std::span<const double> p);

 private:
  std::vector<double> first_, weights_;
  std::int64_t tokens_ = 0;
};

/// Online weights of one stream. The mixture is
///   u p_head + (1 - u) ((1 - v_b) sum_i w_i p_i + v_b p_b)
/// p_head: the model alone with its trained memory. w: Soft-Bayes over the head, the joint softmax
/// and the sources. v: Soft-Bayes for each bucket b over that mixture and the source by bucket; of
/// several such sources, each is mixed in after the one before. u: Bayes' rule, initially one half,
/// so the text's log-probability is at most log 2 nats below the head's. Initial weights of sources
/// are the mixture's constants.
class OnlineWeights {
 public:
  explicit OnlineWeights(const Mixture& mixture);

  /// Buckets of a token: one for each source with weights by bucket; -1: no entries.
  using Buckets = std::vector<std::int64_t>;
  std::vector<Buckets> buckets(const GateInputs& inputs, std::int64_t rows) const;
  /// Returns the weights for a token: of the model alone, of the joint softmax and of each source.
  /// Those that are not by bucket sum to 1.
  std::vector<double> weights(const Buckets& buckets) const;
  /// Returns the weights of R consecutive tokens and learns from each before the next; `components`
  /// (R) are of the observed tokens.
  MixtureWeights learn(const Components& components);

 private:
  // p of the token, in the order of weights().
  void learn(std::span<const double> p, const Buckets& buckets);

  std::vector<bool> by_bucket_;     // for each weight of the plan
  std::vector<std::string> outer_;  // kinds with weights by bucket
  SoftBayes inner_;                 // head, joint, and weights that are not by bucket
  // For each of outer_, by bucket: the mixture of what comes before, and the source.
  std::vector<std::vector<SoftBayes>> buckets_;
  double log_alone_ = 0, log_learned_ = 0;  // log p of the tokens by the head, and by the learned
                                            // mixture
};

/// Converts the weights of R > 0 tokens, each from OnlineWeights::weights(), to a mixture's.
MixtureWeights to_mixture(const std::vector<std::vector<double>>& rows);

}  // namespace infer
