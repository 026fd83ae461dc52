#include "infer/memory/gate_features.h"

#include <cmath>

#include "infer/memory/gate_kernels.h"
#include "nn/base/cuda.h"

namespace infer {
namespace {

using torch::Tensor;

Tensor confidence_here(const Tensor& log_probs) {
  const Tensor rows = log_probs.contiguous();
  const std::int64_t n = rows.size(0), words = rows.size(1);
  const Tensor confidence = torch::empty({n, 3}, torch::kFloat64);
  const float* const from = rows.const_data_ptr<float>();
  double* const to = confidence.data_ptr<double>();
  at::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const RowConfidence row = row_confidence(from + i * words, words);
      to[3 * i] = row.entropy;
      to[3 * i + 1] = std::exp(row.top);
      to[3 * i + 2] = row.top;
    }
  });
  return confidence;
}

}  // namespace

Tensor confidence_of(const Tensor& log_probs) {
  if (nn::in_host_memory(log_probs) && log_probs.scalar_type() == torch::kFloat32)
    return confidence_here(log_probs);
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
