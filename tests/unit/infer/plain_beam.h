#pragma once
// Beam search by definition: all extensions of all hypotheses are ranked at each step.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "nn/base/torch.h"

namespace plain {

struct Text {
  std::vector<std::int64_t> tokens;
  double log_prob = 0;
};

/// Returns the best `width` texts of at most `most` tokens, by log p / tokens^penalty. `next`
/// returns log p (V) of the token after these tokens; `ends` returns whether the last token ends a
/// text.
inline std::vector<Text> beam(std::size_t width, double penalty, std::int64_t most,
    const std::function<torch::Tensor(const std::vector<std::int64_t>&)>& next,
    const std::function<bool(const std::vector<std::int64_t>&)>& ends) {
  std::vector<Text> live{{}}, ended;
  for (std::int64_t length = 1; length <= most && ended.size() < width; ++length) {
    std::vector<Text> all;
    for (const auto& text : live) {
      const torch::Tensor p = next(text.tokens).to(torch::kFloat64).contiguous();
      for (std::int64_t w = 0; w < p.size(0); ++w) {
        all.push_back(text);
        all.back().tokens.push_back(w);
        all.back().log_prob += p.data_ptr<double>()[w];
      }
    }
    std::stable_sort(all.begin(), all.end(),
        [](const Text& a, const Text& b) { return a.log_prob > b.log_prob; });
    live.clear();
    for (std::size_t rank = 0; live.size() < width; ++rank) {
      if (!ends(all[rank].tokens)) live.push_back(all[rank]);
      else if (rank < width) ended.push_back(all[rank]);
    }
  }
  if (ended.size() < width) ended.insert(ended.end(), live.begin(), live.end());
  const auto score = [&](const Text& text) {
    return text.log_prob / std::pow(static_cast<double>(text.tokens.size()), penalty);
  };
  std::stable_sort(ended.begin(), ended.end(),
      [&](const Text& a, const Text& b) { return score(a) > score(b); });
  ended.resize(std::min(ended.size(), width));
  return ended;
}

}  // namespace plain
