#pragma once
// The arithmetic of nn::fused_block for one sequence, on raw float32 memory. See fused_block.h.

#include "nn/kernels/tiled_attention_kernels.h"

namespace nn {

/// Activation of the FFN; gelu is the tanh approximation.
enum class InnerActivation { gelu, relu, silu };

/// Sizes and options of a block over T steps of width d.
struct SequenceShape {
  std::int64_t steps, width;
  std::int64_t heads, kv_heads;  ///< query heads; key and value heads, a divisor of heads
  std::int64_t head_width;
  float scale;          ///< scale of attention scores
  std::int64_t turned;  ///< pairs per head that rotary positions rotate
  std::int64_t inner;
  bool gated;  ///< expand has 2 inner rows; reduce takes activation(first half) * second half
  bool rms;    ///< true: RMS norms; false: layer norms
  InnerActivation activation;
  float epsilon;
  float dropout;
  double attention_dropout;
  std::uint64_t seed;

  std::int64_t d_query() const { return heads * head_width; }
  std::int64_t d_key() const { return kv_heads * head_width; }
  std::int64_t d_all() const { return d_query() + 2 * d_key(); }
  std::int64_t expanded() const { return gated ? 2 * inner : inner; }
};

/// The twelve tensors of a block in BlockWeights' order. A null bias counts as zero. As gradients,
/// the kernel adds to these buffers.
template <class Float> struct SequenceWeights {
  Float *norm1, *norm1_bias;      // (d)
  Float *qkv, *qkv_bias;          // (d_all, d), (d_all)
  Float *project, *project_bias;  // (d, d_query), (d)
  Float *norm2, *norm2_bias;      // (d)
  Float *expand, *expand_bias;    // (expanded, d), (expanded)
  Float *reduce, *reduce_bias;    // (d, inner), (d)
};

/// One sequence of a batch.
struct SequenceInput {
  const float* x;          ///< (T, d)
  const float *cos, *sin;  ///< (T, turned): rotary positions; not read if turned is 0
  std::uint64_t row;       ///< index in the batch, which selects the dropout masks
};

/// Activations of one sequence that the forward pass saves for the backward pass.
struct SequenceSaved {
  float* qkv;       // (T, d_all): queries and keys after rotation
  float* attended;  // (T, d_query)
  float* log_sums;  // (heads, T)
  float* middle;    // (T, d): the residual stream between attention and FFN
  float* hidden;    // (T, expanded): before the activation
};

/// Computes sequences one at a time. Not thread safe: use one object per thread.
class SequenceKernel {
 public:
  using Weights = SequenceWeights<const float>;

  explicit SequenceKernel(const SequenceShape& shape);
  /// Writes y and ffn_input (T, d). ffn_input may be null.
  void forward(const SequenceInput& in, const Weights& w, const SequenceSaved& saved, float* y,
      float* ffn_input);
  /// Overwrites dx (T, d). dy and d_ffn_input are (T, d); d_ffn_input may be null.
  void backward(const SequenceInput& in, const Weights& w, const SequenceSaved& saved,
      const float* dy, const float* d_ffn_input, float* dx, const SequenceWeights<float>& d);

 private:
  void attend(const SequenceInput& in, const Weights& w, const SequenceSaved& saved);
  void feed_forward(
      const Weights& w, std::uint64_t row, const SequenceSaved& saved, float* y, float* ffn_input);
  void attend_backward(const SequenceInput& in, const Weights& w, const SequenceSaved& saved,
      float* dx, const SequenceWeights<float>& d);
  void feed_forward_backward(const Weights& w, std::uint64_t row, const SequenceSaved& saved,
      const float* dy, const float* d_ffn_input, float* dx, const SequenceWeights<float>& d);
  void turn(const SequenceInput& in, float* qkv, bool back) const;
  void normalise(const Matrix& x, const float* weight, const float* bias, const MatrixOut& y) const;
  void normalise_backward(const Matrix& x, const Matrix& d, const float* weight,
      const MatrixOut& dx, float* d_weight, float* d_bias) const;
  void activate(const Matrix& hidden, const MatrixOut& active) const;
  void activate_backward(const Matrix& hidden, const MatrixOut& active, const MatrixOut& d) const;
  /// Returns the attention inputs of head h of a row.
  TiledAttention::Inputs inputs(const float* qkv, std::uint64_t row, std::int64_t h) const;
  /// Return q, k and v, or their gradients, of query head h, each (T, head_width).
  template <class Float> MatrixOf<Float> query_of(Float* qkv, std::int64_t h) const;
  template <class Float> MatrixOf<Float> key_of(Float* qkv, std::int64_t h) const;
  template <class Float> MatrixOf<Float> value_of(Float* qkv, std::int64_t h) const;
  template <class Float> MatrixOf<Float> head_of(Float* attended, std::int64_t h) const;

  SequenceShape shape_;
  TiledAttention attention_;
  std::vector<float> normed_, d_normed_;  // (T, d)
  std::vector<float> d_attended_;         // (T, d_query)
  std::vector<float> wide_;               // (rows of a chunk, inner)
  std::vector<float> d_wide_;             // (rows of a chunk, expanded)
  std::vector<float> d_qkv_;              // (T, d_all)
};

}  // namespace nn
