#include "infer/memory/learn_weights.h"

#include <algorithm>

#include "nn/base/upload.h"

namespace infer {
namespace {

constexpr std::int64_t kLearnBytes = 64 << 20;  // bytes of whole rows of log-probabilities

}  // namespace

WeightsLearner::WeightsLearner(const MemoryPlan& plan, std::int64_t window, const nn::Model& model)
    : memory_(plan, window, /*streaming=*/true, model),
      block_(std::max<std::int64_t>(
          1, kLearnBytes / (8 * std::max<std::int64_t>(1, model.vocabulary)))) {}

std::int64_t WeightsLearner::learn(nn::Head& head, const std::vector<std::int64_t>& tokens,
                                   const nn::Hidden& hidden, const BesideRows& beside,
                                   std::int64_t most) {
  const torch::NoGradGuard no_gradient;
  const std::int64_t known = std::ssize(tokens) - 1, from = scored_;
  const std::int64_t to = std::min(known, from + std::min(most, known));
  Window rows;
  const auto own = hidden.slice(0, known);
  rows.output = own.output, rows.key = own.key;
  rows.targets = nn::upload(torch::tensor(tokens).slice(0, 1), own.output.device());
  const torch::Tensor zeros = torch::zeros({known}, torch::kInt64);
  rows.place = {zeros, zeros, torch::arange(known)};
  rows.before = {tokens[0]};
  while (scored_ < to) {
    const std::int64_t end = std::min(scored_ + block_, to);
    memory_.log_probs(head, rows, scored_, end, nullptr, 0, beside(scored_, end));
    scored_ = end;
  }
  return to - from;
}

}  // namespace infer
