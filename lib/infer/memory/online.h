#pragma once
// Weights of a mixture that learn from the tokens of a stream that came, and from nothing else.

#include <cstdint>
#include <span>
#include <vector>

#include "infer/memory/mixture.h"

namespace infer {

/// Weights that follow the best constant mixture of n sources. With p_i what each gave the token
/// that came and p what they gave together, Soft-Bayes (Orseau, Lattimore and Legg 2017) makes of w
///   w (1 - e + e p_i / p), drawn towards the first weights by the part that the rate falls,
/// with the rate e_t = sqrt(log n / (2 n t)) after t tokens, at most 1/2. The nats above those of
/// the best constant mixture grow as sqrt(n t log n) at worst.
class SoftBayes {
 public:
  explicit SoftBayes(std::vector<double> first) : first_(std::move(first)), weights_(first_) {}
  std::span<const double> weights() const { return weights_; }
  /// p of each source, at least one above 0.
  void learn(std::span<const double> p);

 private:
  std::vector<double> first_, weights_;
  std::int64_t tokens_ = 0;
};

/// What each component of a mixture gave a token.
struct TokenParts {
  double head = 0, joint = 0;    ///< p of the model alone, and of the joint softmax
  std::vector<double> own = {};  ///< of each of the plan's weights; joint where nothing is seen
  std::int64_t bucket = -1;      ///< of the source whose weight is of the whole; -1: none
};
/// The weights of one token: of what is not by bucket they sum to 1.
struct TokenWeights {
  double head = 0, joint = 0;
  std::vector<double> own = {};
};

/// The weights of one stream. p of the mixture is
///   u p_head + (1 - u) ((1 - v_b) sum_i w_i p_i + v_b p_b)
/// p_head: of the model alone, with the memory that it was trained with.
/// w: Soft-Bayes over the head, the joint softmax and the sources; v: the same, for each bucket b,
/// over these together and the source by bucket; u: Bayes' rule, half at first, so that the text is
/// less probable than by the head alone by log 2 nats at most. The first weights of sources are the
/// mixture's constants.
class OnlineWeights {
 public:
  explicit OnlineWeights(const Mixture& mixture);

  TokenWeights weights(std::int64_t bucket) const;
  void learn(const TokenParts& parts);
  /// Weights for R tokens that follow each other, each of which is learned from before the next:
  /// `components` (R) of the tokens that came.
  MixtureWeights learn(const Components& components);

 private:
  std::vector<bool> by_bucket_;             // of each of the plan's weights
  SoftBayes inner_;                         // head, joint, those that are not by bucket
  std::vector<SoftBayes> buckets_;          // the rest, the source by bucket
  double log_alone_ = 0, log_learned_ = 0;  // log p of the tokens by the head, and by the others
};

/// Weights of R tokens, a row each, as those of a mixture.
MixtureWeights to_mixture(const std::vector<TokenWeights>& rows);

}  // namespace infer
