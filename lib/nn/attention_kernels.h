#pragma once
// Causal attention of one head of one sequence on the CPU, forward and backward, in blocks of rows.

#include <cstdint>
#include <vector>

namespace nn {

/// Causal softmax attention, a block of query rows at a time: no (T, T) matrix. q, k, v, o and
/// their gradients are (T, width) with row stride `stride` (o and its gradient: `o_stride`),
/// float32. Not thread safe: one a thread.
class CausalAttention {
 public:
  CausalAttention(std::int64_t steps, std::int64_t width, std::int64_t stride,
                  std::int64_t o_stride, float scale);
  /// o = softmax(scale q k^T, causal) v; log_sums (T): log-sum-exp of each row, for backward.
  void forward(const float* q, const float* k, const float* v, float* o, float* log_sums);
  /// Overwrites dq, dk, dv.
  void backward(const float* q, const float* k, const float* v, const float* o,
                const float* log_sums, const float* d_o, float* dq, float* dk, float* dv);

 private:
  std::int64_t steps_, width_, stride_, o_stride_, rows_;
  float scale_;
  std::vector<float> scores_, d_scores_;
};

}  // namespace nn
