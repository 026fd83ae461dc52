#include "infer/windows/confidence_kernels.h"

#include <limits>

#include "nn/kernels/vector_math.h"

namespace infer {

RowConfidence row_confidence(const float* log_probs, std::int64_t vocabulary) {
  constexpr std::int64_t kPart = 4096;  // tokens whose sum float32 holds precisely
  constexpr float kNone = -87;          // below it e^x x is 0
  float top = -std::numeric_limits<float>::infinity();
  double entropy = 0;
  for (std::int64_t begin = 0; begin < vocabulary; begin += kPart) {
    const std::int64_t n = vocabulary - begin < kPart ? vocabulary - begin : kPart;
    const float* const part = log_probs + begin;
    float sum = 0;
#pragma omp simd reduction(+ : sum) reduction(max : top)
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = part[i];
      top = x > top ? x : top;
      sum += x > kNone ? nn::vec::exp(x) * x : 0.0f;
    }
    entropy -= static_cast<double>(sum);
  }
  return {entropy, static_cast<double>(top)};
}

}  // namespace infer
