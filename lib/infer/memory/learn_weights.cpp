#include "infer/memory/learn_weights.h"

#include <algorithm>

#include "infer/memory/stream_memory.h"
#include "nn/base/upload.h"

namespace infer {
namespace {

constexpr std::int64_t kLearnBytes = 64 << 20;  // bytes of whole rows of log-probabilities

}  // namespace

OnlineWeights learned_weights(const MemoryPlan& plan, std::int64_t window, const nn::Model& model,
                              nn::Head& head, const std::vector<std::int64_t>& tokens,
                              const nn::Hidden& hidden, const BesideRows& beside) {
  const torch::NoGradGuard no_gradient;
  StreamMemory learner(plan, window, /*streaming=*/true, model);
  const std::int64_t known = std::ssize(tokens) - 1;
  const std::int64_t block =
      std::max<std::int64_t>(1, kLearnBytes / (8 * std::max<std::int64_t>(1, model.vocabulary)));
  Window rows;
  const auto own = hidden.slice(0, known);
  rows.output = own.output, rows.key = own.key;
  rows.targets = nn::upload(torch::tensor(tokens).slice(0, 1), own.output.device());
  const torch::Tensor zeros = torch::zeros({known}, torch::kInt64);
  rows.place = {zeros, zeros, torch::arange(known)};
  rows.before = {tokens[0]};
  for (std::int64_t begin = 0; begin < known; begin += block) {
    const std::int64_t end = std::min(begin + block, known);
    learner.log_probs(head, rows, begin, end, nullptr, 0, beside(begin, end));
  }
  return learner.learned();
}

}  // namespace infer
