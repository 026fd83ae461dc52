#pragma once
// What each source is worth on a text: the text alone, with each source by
// itself, with all of them, of one pass of the model.

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/memory/online.h"
#include "infer/score/scorer.h"

namespace infer {

/// Mixtures of some kinds of sources beside each other. Where one is left out
/// it sees nothing, so that its weight is the joint softmax's; weights that are
/// learned are learned for each.
class Ablation {
 public:
  /// `tokens`: of the text, about. Throws Error{usage} where there is no
  /// source, and for gates, which know one mixture.
  Ablation(const MemoryPlan& memory, std::uint64_t tokens);

  void add(const Scored& scored);
  /// {"sources", "perplexity", "loss", "difference", "low", "high", "p"} a row:
  /// none, each, all. The difference is of nats a token from none, with its 95
  /// % interval, by blocks of tokens as compare-ppl has them.
  std::vector<core::OrderedJson> rows() const;

 private:
  struct Case {
    std::string name;
    std::vector<bool> kept;  // of the plan's kinds
    OnlineWeights online;
    double nats = 0;
    std::vector<double> blocks = {};  // nats
  };
  MemoryPlan memory_;
  Mixture mixture_;
  std::uint64_t block_, tokens_ = 0;
  std::vector<Case> cases_;
};

}  // namespace infer
