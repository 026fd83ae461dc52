#pragma once
// The arithmetic of nn::fused_block for one sequence, on raw float32 memory. See fused_block.h.

#include <cstdint>
#include <vector>

#include "nn/attention_kernels.h"

namespace nn {

struct SequenceShape {
  std::int64_t steps, width, heads, inner;
  bool gelu;  // else ReLU
  float epsilon;
  float dropout;
  std::uint64_t seed;
};

/// The twelve tensors of a block in BlockWeights' order; a null bias counts as zero. As gradients,
/// sums are added.
template <class Float>
struct SequenceWeights {
  Float *norm1, *norm1_bias, *qkv, *qkv_bias, *project, *project_bias, *norm2, *norm2_bias, *expand,
      *expand_bias, *reduce, *reduce_bias;
};

/// What forward keeps of one sequence for backward.
struct SequenceSaved {
  float* qkv;       // (T, 3 d)
  float* attended;  // (T, d)
  float* log_sums;  // (heads, T)
  float* middle;    // (T, d): the residual stream between attention and FFN
  float* hidden;    // (T, inner): before the activation
};

/// One a thread. `row` numbers the sequence in the batch, for its dropout masks.
class SequenceKernel {
 public:
  explicit SequenceKernel(const SequenceShape& shape);
  /// ffn_input (T, d) may be null.
  void forward(const float* x, const SequenceWeights<const float>& w, std::uint64_t row,
               const SequenceSaved& saved, float* y, float* ffn_input);
  /// d_ffn_input may be null. Overwrites dx.
  void backward(const float* x, const SequenceWeights<const float>& w, std::uint64_t row,
                const SequenceSaved& saved, const float* dy, const float* d_ffn_input, float* dx,
                const SequenceWeights<float>& d);

 private:
  void feed_forward(const float* middle, const SequenceWeights<const float>& w, std::uint64_t row,
                    float* hidden, float* y, float* ffn_input);
  SequenceShape shape_;
  CausalAttention attention_;
  std::vector<float> normed_, wide_, d_wide_, d_normed_, d_qkv_, d_attended_;
};

}  // namespace nn
