#include "infer/memory/gate_features.h"

#include <cmath>

namespace infer {

using torch::Tensor;

Tensor confidence_of(const Tensor& log_probs) {
  constexpr double kFinite = -1e30;  // a word that cannot be adds nothing
  const Tensor p = log_probs.exp();
  const Tensor entropy = -(p * log_probs.clamp_min(kFinite)).sum(1);
  const Tensor top = log_probs.amax(1);
  return torch::stack({entropy, top.exp(), top}, 1).to(torch::kFloat64);
}

Tensor gate_features_of(const Neighbours& found) {
  const Tensor scores = found.scores.slice(1, 0, kGateNearest).to(torch::kFloat64);
  const Tensor labels = found.labels.slice(1, 0, kGateNearest);
  const Tensor there = labels >= 0;
  const Tensor n = there.sum(1).to(torch::kFloat64);
  const Tensor nearest = scores.select(1, 0);
  const Tensor last = torch::where(there, scores, HUGE_VAL).amin(1);
  const Tensor agree = (there * (labels == labels.slice(1, 0, 1))).sum(1) / n;
  const Tensor sorted = std::get<0>(labels.sort(1));
  const Tensor first = (sorted.slice(1, 0, 1) >= 0).sum(1);
  const Tensor changes = (sorted.slice(1, 1) != sorted.slice(1, 0, -1)) * (sorted.slice(1, 1) >= 0);
  const Tensor distinct = (first + changes.sum(1)) / n;
  const Tensor features = torch::stack({nearest, nearest - last, agree, distinct}, 1);
  return features.masked_fill(n.unsqueeze(1) == 0, NAN);
}

std::array<double, 3> gate_features_of(const NgramContext& context) {
  if (context.bucket < 0) return {NAN, NAN, NAN};
  return {std::log1p(static_cast<double>(context.match.length)), context.followers.one ? 1.0 : 0.0,
          std::log(static_cast<double>(context.followers.count))};
}

}  // namespace infer
