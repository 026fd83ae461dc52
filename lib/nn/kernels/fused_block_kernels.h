#pragma once
// The arithmetic of nn::fused_block for one sequence, on raw float32 memory. See fused_block.h.

#include <cstdint>
#include <vector>

#include "nn/kernels/attention_kernels.h"

namespace nn {

struct SequenceShape {
  std::int64_t steps, width, heads, inner;
  /// Else ReLU.
  bool gelu;
  float epsilon;
  float dropout;
  std::uint64_t seed;

  std::int64_t head_width() const { return width / heads; }
};

/// The twelve tensors of a block in BlockWeights' order; a null bias counts as zero. As gradients,
/// sums are added.
template <class Float>
struct SequenceWeights {
  Float *norm1, *norm1_bias;      // (d)
  Float *qkv, *qkv_bias;          // (3 d, d), (3 d)
  Float *project, *project_bias;  // (d, d), (d)
  Float *norm2, *norm2_bias;      // (d)
  Float *expand, *expand_bias;    // (inner, d), (inner)
  Float *reduce, *reduce_bias;    // (d, inner), (d)
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
  using Weights = SequenceWeights<const float>;

  explicit SequenceKernel(const SequenceShape& shape);
  /// x, y, ffn_input (T, d); ffn_input may be null.
  void forward(const float* x, const Weights& w, std::uint64_t row, const SequenceSaved& saved,
               float* y, float* ffn_input);
  /// dy, d_ffn_input, dx (T, d); d_ffn_input may be null. Overwrites dx.
  void backward(const float* x, const Weights& w, std::uint64_t row, const SequenceSaved& saved,
                const float* dy, const float* d_ffn_input, float* dx,
                const SequenceWeights<float>& d);

 private:
  void attend(const float* x, const Weights& w, std::uint64_t row, const SequenceSaved& saved);
  void feed_forward(const Weights& w, std::uint64_t row, const SequenceSaved& saved, float* y,
                    float* ffn_input);
  void attend_backward(const float* x, const Weights& w, std::uint64_t row,
                       const SequenceSaved& saved, float* dx, const SequenceWeights<float>& d);
  void feed_forward_backward(const Weights& w, std::uint64_t row, const SequenceSaved& saved,
                             const float* dy, const float* d_ffn_input, float* dx,
                             const SequenceWeights<float>& d);
  /// Head h of q, k and v, or of their gradients: each (T, d / heads).
  template <class Float>
  MatrixOf<Float> head_of(Float* qkv, std::int64_t which, std::int64_t h) const;
  template <class Float>
  MatrixOf<Float> head_of(Float* attended, std::int64_t h) const;

  SequenceShape shape_;
  CausalAttention attention_;
  std::vector<float> normed_, d_normed_, d_attended_;  // (T, d)
  std::vector<float> wide_, d_wide_;                   // (rows of a chunk, inner)
  std::vector<float> d_qkv_;                           // (T, 3 d)
};

}  // namespace nn
