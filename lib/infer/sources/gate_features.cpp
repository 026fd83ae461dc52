#include "infer/sources/gate_features.h"

#include <cmath>

#include "infer/sources/gate_kernels.h"
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
  constexpr double kFinite = -1e30;  // replaces -inf: an impossible token adds nothing
  const Tensor p = log_probs.exp();
  const Tensor entropy = -(p * log_probs.clamp_min(kFinite)).sum(1);
  const Tensor top = log_probs.amax(1);
  return torch::stack({entropy, top.exp(), top}, 1).to(torch::kFloat64);
}

}  // namespace infer
