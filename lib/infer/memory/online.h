#pragma once
// Online learning of mixture weights from the past tokens of a stream.

#include "infer/memory/mixture.h"

namespace infer {

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
