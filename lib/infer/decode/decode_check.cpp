#include "infer/decode/decode_check.h"

#include <algorithm>
#include <cmath>

namespace infer {

DecodeError compare(Engine& reference, Engine& other, const std::vector<std::int64_t>& tokens) {
  const torch::NoGradGuard no_gradient;
  DecodeError error;
  reference.open(1);
  other.open(1);
  for (const auto token : tokens) {
    const auto rows = [&](Engine& engine) {
      const auto hidden = engine.feed({Feed{{token}}});
      return engine.head().log_probs(hidden.output, nullptr).to(torch::kCPU, torch::kFloat64);
    };
    const auto p = rows(reference), q = rows(other);
    const auto difference = p - q;
    error.rms += difference.square().mean().item<double>();
    error.max = std::max(error.max, difference.abs().max().item<double>());
    error.divergence += (p.exp() * difference).sum().item<double>();
    error.same_best += p.argmax(1).equal(q.argmax(1)) ? 1 : 0;
  }
  const auto n = static_cast<double>(tokens.size());
  error.rms = std::sqrt(error.rms / n);
  error.divergence /= n;
  error.same_best /= n;
  reference.open(0);
  other.open(0);
  return error;
}

}  // namespace infer
