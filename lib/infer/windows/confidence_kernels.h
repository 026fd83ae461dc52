#pragma once
// The arithmetic of infer::confidence_of on raw float32 memory.

#include <cstdint>

namespace infer {

/// Confidence of one row of log-probabilities; -inf marks impossible tokens.
struct RowConfidence {
  double entropy;  ///< nats
  double top;      ///< the highest log-probability
};
RowConfidence row_confidence(const float* log_probs, std::int64_t vocabulary);

}  // namespace infer
