#pragma once
// Learns the weights of sources from the given beginning of a text: a prompt, or a context.

#include <cstdint>
#include <functional>
#include <vector>

#include "infer/memory/online.h"
#include "infer/sources/memory_plan.h"
#include "nn/arch/model.h"
#include "nn/base/architecture.h"
#include "nn/base/torch.h"

namespace infer {

/// Returns log p by each further model, (end - begin, its V), of the tokens after these positions.
using BesideRows = std::function<std::vector<torch::Tensor>(std::int64_t begin, std::int64_t end)>;

/// Scores all tokens but the first, in order, with the memories of a stream that begins with them.
/// `hidden` are of the tokens; the last is not needed. The plan's weights are learned online.
OnlineWeights learned_weights(const MemoryPlan& plan, std::int64_t window, const nn::Model& model,
                              nn::Head& head, const std::vector<std::int64_t>& tokens,
                              const nn::Hidden& hidden, const BesideRows& beside);

}  // namespace infer
