#pragma once
// Learns the weights of sources from the given beginning of a text: a prompt, or a context.

#include <cstdint>
#include <functional>
#include <vector>

#include "infer/memory/online.h"
#include "infer/memory/stream_memory.h"
#include "infer/sources/memory_plan.h"
#include "nn/arch/model.h"
#include "nn/base/architecture.h"
#include "nn/base/torch.h"

namespace infer {

/// Returns log p by each further model, (end - begin, its V), of the tokens after these positions.
using BesideRows = std::function<std::vector<torch::Tensor>(std::int64_t begin, std::int64_t end)>;

/// Scores all tokens of a text but the first, in order, with the memories of a stream that begins
/// with them. The plan's weights are learned online.
class WeightsLearner {
 public:
  WeightsLearner(const MemoryPlan& plan, std::int64_t window, const nn::Model& model);
  /// Scores at most `most` more of the tokens and returns how many. The arguments before `most` are
  /// of the whole text in each call; `hidden` may lack the last token.
  std::int64_t learn(nn::Head& head, const std::vector<std::int64_t>& tokens,
                     const nn::Hidden& hidden, const BesideRows& beside, std::int64_t most);
  /// Returns how many tokens were scored.
  std::int64_t scored() const { return scored_; }
  const OnlineWeights& weights() const { return memory_.learned(); }

 private:
  StreamMemory memory_;
  std::int64_t block_, scored_ = 0;
};

}  // namespace infer
