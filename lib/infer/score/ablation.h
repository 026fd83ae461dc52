#pragma once
// Measures the effect of each source on a text: no source, each source alone, and all sources, in
// one pass of the model.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/memory/online.h"
#include "infer/score/scorer.h"

namespace infer {

/// Mixtures of subsets of the source kinds. An omitted source has no entries, so its weight is
/// added to the joint softmax. Online weights are learned separately for each mixture.
class Ablation {
 public:
  /// `tokens`: approximate length of the text. Throws Error{usage} without sources, and with gates,
  /// which are fitted for one mixture.
  Ablation(const MemoryPlan& memory, std::uint64_t tokens);

  void add(const Scored& scored);
  /// Returns a row {"sources", "perplexity", "loss", "difference", "low", "high", "p"} for none,
  /// each and all sources. The difference is in nats a token relative to none, with its 95 %
  /// confidence interval over blocks of tokens, as in compare-ppl.
  std::vector<core::OrderedJson> rows() const;

 private:
  struct Case {
    std::string name;
    std::vector<bool> kept;  // for each kind of the plan
    OnlineWeights online;
    double nats = 0;
    std::vector<double> blocks = {};  // nats of each block
  };
  MemoryPlan memory_;
  Mixture mixture_;
  std::uint64_t block_, tokens_ = 0;
  std::vector<Case> cases_;
};

}  // namespace infer
