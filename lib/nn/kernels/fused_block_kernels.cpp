#include "nn/kernels/fused_block_kernels.h"

#include <algorithm>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

// Rows of the FFN computed at once: 128 x inner floats fit the second-level cache.
constexpr std::int64_t kChunk = 128;

// y = x W^T + bias with x (n, in), W (out, in), y (n, out). bias (out) may be null.
void affine(const Matrix& x, const Matrix& w, const float* bias, const MatrixOut& y) {
  for (std::int64_t i = 0; i < y.rows; ++i) {
    if (bias != nullptr) {
      std::copy(bias, bias + y.columns, y.row(i));
    } else {
      std::fill(y.row(i), y.row(i) + y.columns, 0.0f);
    }
  }
  product(x, transposed(w), y, Into::sum);
}

// dW += dy^T x with x (n, in), dy (n, out), dW (out, in). If d_bias (out) is not null, the column
// sums of dy are added to it.
void affine_weights_backward(
    const Matrix& x, const Matrix& dy, const MatrixOut& dw, float* d_bias) {
  product(transposed(dy), x, dw, Into::sum);
  for (std::int64_t i = 0; d_bias != nullptr && i < dy.rows; ++i)
    vec::add(dy.row(i), dy.columns, d_bias);
}

// Dropout of a sequence's residual stream at one of its two sites. It uses the complement of the
// seed, so that its masks are independent of those of the attention weights.
struct Dropout {
  DropoutStream::Row row;
  float scale;

  Dropout(float p, std::uint64_t seed, std::uint64_t sequence, std::uint64_t site)
      : row(DropoutStream(p, ~seed).row(sequence, site)), scale(DropoutStream(p, seed).scale()) {}
  float operator()(std::uint32_t i) const { return row.drops(i) ? 0.0f : scale; }
};
constexpr std::uint64_t kAttentionSite = 0, kFeedForwardSite = 1;

// y = x + dropout(y) for n elements; element 0 has number `first` in the sequence.
void add_residual(const float* x, std::int64_t n, std::int64_t first, float dropout,
    const Dropout& keep, float* y) {
  if (dropout > 0) {
    const auto base = static_cast<std::uint32_t>(first);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = x[i] + y[i] * keep(base + static_cast<std::uint32_t>(i));
  } else {
    vec::add(x, n, y);
  }
}

// Returns the gradient of add_residual's y from the gradient d of its result. With dropout the
// result is written to `room` (n).
const float* residual_backward(const float* d, std::int64_t n, std::int64_t first, float dropout,
    const Dropout& keep, float* room) {
  if (dropout == 0) return d;
  const auto base = static_cast<std::uint32_t>(first);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) room[i] = d[i] * keep(base + static_cast<std::uint32_t>(i));
  return room;
}

// An activation, with its value and its derivative.
struct Gelu {
  static float at(float v) { return vec::gelu(v); }
  static float at(float v, float& slope) {
    const float th = vec::tanh(vec::kGeluA * (v + vec::kGeluB * v * v * v));
    slope = 0.5f * (1.0f + th) +
            0.5f * v * (1.0f - th * th) * vec::kGeluA * (1.0f + 3.0f * vec::kGeluB * v * v);
    return 0.5f * v * (1.0f + th);
  }
};
struct Relu {
  static float at(float v) { return v > 0 ? v : 0; }
  static float at(float v, float& slope) {
    slope = v > 0 ? 1.0f : 0.0f;
    return v > 0 ? v : 0;
  }
};
struct Silu {
  static float at(float v) { return vec::silu(v); }
  static float at(float v, float& slope) {
    const float share = 1.0f / (1.0f + vec::exp(-v));
    slope = share * (1.0f + v * (1.0f - share));
    return v * share;
  }
};

// a = activation(h), or a = activation(first half of h) * second half if gated.
template <class Activation>
void activate_row(const float* h, std::int64_t inner, bool gated, float* a) {
  if (gated) {
#pragma omp simd
    for (std::int64_t i = 0; i < inner; ++i) a[i] = Activation::at(h[i]) * h[i + inner];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < inner; ++i) a[i] = Activation::at(h[i]);
  }
}

// Recomputes a as activate_row does. The first `inner` elements of d are dL/da on entry; d is dL/dh
// on return.
template <class Activation>
void activate_row_backward(const float* h, std::int64_t inner, bool gated, float* a, float* d) {
  if (gated) {
#pragma omp simd
    for (std::int64_t i = 0; i < inner; ++i) {
      float slope;
      const float value = Activation::at(h[i], slope), factor = h[i + inner], da = d[i];
      a[i] = value * factor;
      d[i] = da * factor * slope;
      d[i + inner] = da * value;
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < inner; ++i) {
      float slope;
      a[i] = Activation::at(h[i], slope);
      d[i] *= slope;
    }
  }
}

}  // namespace

SequenceKernel::SequenceKernel(const SequenceShape& s)
    : shape_(s), attention_({s.steps, s.steps, s.head_width, s.scale, /*causal=*/true},
                     DropoutStream(s.attention_dropout, s.seed)),
      normed_(static_cast<std::size_t>(s.steps * s.width)),
      wide_(static_cast<std::size_t>(std::min(kChunk, s.steps) * s.inner)) {}

template <class Float> MatrixOf<Float> SequenceKernel::query_of(Float* qkv, std::int64_t h) const {
  return {qkv + h * shape_.head_width, shape_.steps, shape_.head_width, shape_.d_all()};
}

template <class Float> MatrixOf<Float> SequenceKernel::key_of(Float* qkv, std::int64_t h) const {
  return query_of(qkv + shape_.d_query(), h * shape_.kv_heads / shape_.heads);
}

template <class Float> MatrixOf<Float> SequenceKernel::value_of(Float* qkv, std::int64_t h) const {
  return key_of(qkv + shape_.d_key(), h);
}

template <class Float>
MatrixOf<Float> SequenceKernel::head_of(Float* attended, std::int64_t h) const {
  return {attended + h * shape_.head_width, shape_.steps, shape_.head_width, shape_.d_query()};
}

TiledAttention::Inputs SequenceKernel::inputs(
    const float* qkv, std::uint64_t row, std::int64_t h) const {
  TiledAttention::Inputs in{query_of(qkv, h), key_of(qkv, h), value_of(qkv, h)};
  in.head = row * static_cast<std::uint64_t>(shape_.heads) + static_cast<std::uint64_t>(h);
  return in;
}

// Rotates queries and keys, which are adjacent; with `back`, rotates their gradients back.
void SequenceKernel::turn(const SequenceInput& in, float* qkv, bool back) const {
  const std::int64_t pairs = shape_.turned;
  if (pairs == 0) return;
  for (std::int64_t t = 0; t < shape_.steps; ++t) {
    const float *cos = in.cos + t * pairs, *sin = in.sin + t * pairs;
    for (std::int64_t h = 0; h < shape_.heads + shape_.kv_heads; ++h) {
      float* const head = qkv + t * shape_.d_all() + h * shape_.head_width;
      vec::turn(cos, sin, pairs, head, back ? -1 : 1);
    }
  }
}

void SequenceKernel::normalise(
    const Matrix& x, const float* weight, const float* bias, const MatrixOut& y) const {
  const auto row = shape_.rms ? vec::rms_norm : vec::layer_norm;
  for (std::int64_t i = 0; i < x.rows; ++i)
    row(x.row(i), weight, bias, x.columns, shape_.epsilon, y.row(i));
}

// Adds the gradient through normalise to dx, d_weight and d_bias. `d` is dL/dy.
void SequenceKernel::normalise_backward(const Matrix& x, const Matrix& d, const float* weight,
    const MatrixOut& dx, float* d_weight, float* d_bias) const {
  const auto row = shape_.rms ? vec::rms_norm_backward : vec::layer_norm_backward;
  for (std::int64_t i = 0; i < x.rows; ++i)
    row(x.row(i), d.row(i), weight, x.columns, shape_.epsilon, dx.row(i), d_weight, d_bias);
}

void SequenceKernel::activate(const Matrix& hidden, const MatrixOut& active) const {
  const auto row = shape_.activation == InnerActivation::gelu   ? activate_row<Gelu>
                   : shape_.activation == InnerActivation::relu ? activate_row<Relu>
                                                                : activate_row<Silu>;
  for (std::int64_t i = 0; i < hidden.rows; ++i)
    row(hidden.row(i), shape_.inner, shape_.gated, active.row(i));
}

void SequenceKernel::activate_backward(
    const Matrix& hidden, const MatrixOut& active, const MatrixOut& d) const {
  const auto row = shape_.activation == InnerActivation::gelu   ? activate_row_backward<Gelu>
                   : shape_.activation == InnerActivation::relu ? activate_row_backward<Relu>
                                                                : activate_row_backward<Silu>;
  for (std::int64_t i = 0; i < hidden.rows; ++i)
    row(hidden.row(i), shape_.inner, shape_.gated, active.row(i), d.row(i));
}

// saved.middle = x + dropout(project(attention(norm1(x)))).
void SequenceKernel::attend(const SequenceInput& in, const Weights& w, const SequenceSaved& saved) {
  const std::int64_t t = shape_.steps, d = shape_.width, d_all = shape_.d_all(),
                     d_query = shape_.d_query();
  const MatrixOut normed(normed_.data(), t, d), qkv(saved.qkv, t, d_all),
      middle(saved.middle, t, d);
  normalise({in.x, t, d}, w.norm1, w.norm1_bias, normed);
  affine(normed, {w.qkv, d_all, d}, w.qkv_bias, qkv);
  turn(in, saved.qkv, false);
  for (std::int64_t h = 0; h < shape_.heads; ++h)
    attention_.forward(
        inputs(saved.qkv, in.row, h), head_of(saved.attended, h), saved.log_sums + h * t);
  affine(Matrix(saved.attended, t, d_query), {w.project, d, d_query}, w.project_bias, middle);
  const Dropout keep(shape_.dropout, shape_.seed, in.row, kAttentionSite);
  add_residual(in.x, t * d, 0, shape_.dropout, keep, saved.middle);
}

// y = middle + dropout(reduce(activation(expand(norm2(middle))))), computed a chunk of rows at a
// time.
void SequenceKernel::feed_forward(
    const Weights& w, std::uint64_t row, const SequenceSaved& saved, float* y, float* ffn_input) {
  const std::int64_t d = shape_.width, inner = shape_.inner, wide = shape_.expanded();
  const Dropout keep(shape_.dropout, shape_.seed, row, kFeedForwardSite);
  for (std::int64_t begin = 0; begin < shape_.steps; begin += kChunk) {
    const std::int64_t n = std::min(kChunk, shape_.steps - begin);
    const Matrix middle(saved.middle + begin * d, n, d);
    const MatrixOut input(ffn_input != nullptr ? ffn_input + begin * d : normed_.data(), n, d),
        hidden(saved.hidden + begin * wide, n, wide), active(wide_.data(), n, inner),
        out(y + begin * d, n, d);
    normalise(middle, w.norm2, w.norm2_bias, input);
    affine(input, {w.expand, wide, d}, w.expand_bias, hidden);
    activate(hidden, active);
    affine(active, {w.reduce, d, inner}, w.reduce_bias, out);
    add_residual(middle.data, n * d, begin * d, shape_.dropout, keep, out.data);
  }
}

void SequenceKernel::forward(const SequenceInput& in, const Weights& w, const SequenceSaved& saved,
    float* y, float* ffn_input) {
  attend(in, w, saved);
  feed_forward(w, in.row, saved, y, ffn_input);
}

// Writes dx = dL/d middle, a chunk of rows at a time.
void SequenceKernel::feed_forward_backward(const Weights& w, std::uint64_t row,
    const SequenceSaved& saved, const float* dy, const float* d_ffn_input, float* dx,
    const SequenceWeights<float>& d) {
  const std::int64_t width = shape_.width, inner = shape_.inner, wide = shape_.expanded();
  const Matrix expand(w.expand, wide, width), reduce(w.reduce, width, inner);
  const Dropout keep(shape_.dropout, shape_.seed, row, kFeedForwardSite);
  for (std::int64_t begin = 0; begin < shape_.steps; begin += kChunk) {
    const std::int64_t n = std::min(kChunk, shape_.steps - begin);
    const Matrix middle(saved.middle + begin * width, n, width),
        hidden(saved.hidden + begin * wide, n, wide);
    const MatrixOut into(dx + begin * width, n, width), active(wide_.data(), n, inner),
        d_hidden(d_wide_.data(), n, wide), normed(normed_.data(), n, width),
        d_input(d_normed_.data(), n, width);
    std::copy(dy + begin * width, dy + (begin + n) * width, into.data);

    // d_input holds first the gradient through dropout, then the gradient of the FFN's input. The
    // front of d_hidden holds first the gradient of the activations.
    const Matrix d_out(residual_backward(dy + begin * width, n * width, begin * width,
                           shape_.dropout, keep, d_input.data),
        n, width);
    product(d_out, reduce, MatrixOut(d_wide_.data(), n, inner, wide));
    activate_backward(hidden, active, d_hidden);
    affine_weights_backward(active, d_out, {d.reduce, width, inner}, d.reduce_bias);

    normalise(middle, w.norm2, w.norm2_bias, normed);
    affine_weights_backward(normed, d_hidden, {d.expand, wide, width}, d.expand_bias);
    product(d_hidden, expand, d_input);
    if (d_ffn_input != nullptr) vec::add(d_ffn_input + begin * width, n * width, d_input.data);
    normalise_backward(middle, d_input, w.norm2, into, d.norm2, d.norm2_bias);
  }
}

// dx is dL/d middle on entry and dL/dx on return.
void SequenceKernel::attend_backward(const SequenceInput& in, const Weights& w,
    const SequenceSaved& saved, float* dx, const SequenceWeights<float>& d) {
  const std::int64_t t = shape_.steps, width = shape_.width, d_all = shape_.d_all(),
                     d_query = shape_.d_query(), group = shape_.heads / shape_.kv_heads;
  const Matrix x(in.x, t, width), attended(saved.attended, t, d_query);
  const MatrixOut d_x(dx, t, width), normed(normed_.data(), t, width),
      d_normed(d_normed_.data(), t, width), d_attended(d_attended_.data(), t, d_query),
      d_qkv(d_qkv_.data(), t, d_all);
  const Dropout keep(shape_.dropout, shape_.seed, in.row, kAttentionSite);
  const Matrix d_projected(
      residual_backward(dx, t * width, 0, shape_.dropout, keep, d_normed.data), t, width);
  affine_weights_backward(attended, d_projected, {d.project, width, d_query}, d.project_bias);
  product(d_projected, Matrix(w.project, width, d_query), d_attended);

  for (std::int64_t h = 0; h < shape_.heads; ++h) {
    const float* const log_sums = saved.log_sums + h * t;
    const Matrix out = head_of(saved.attended, h), d_head = head_of(d_attended.data, h);
    const MatrixOut dq = query_of(d_qkv.data, h), dk = key_of(d_qkv.data, h),
                    dv = value_of(d_qkv.data, h);
    const Into keys = h % group == 0 ? Into::fresh : Into::sum;
    attention_.backward(inputs(saved.qkv, in.row, h), log_sums, {out, d_head, dq, dk, dv, keys});
  }
  turn(in, d_qkv.data, true);

  normalise(x, w.norm1, w.norm1_bias, normed);
  affine_weights_backward(normed, d_qkv, {d.qkv, d_all, width}, d.qkv_bias);
  product(d_qkv, Matrix(w.qkv, d_all, width), d_normed);
  normalise_backward(x, d_normed, w.norm1, d_x, d.norm1, d.norm1_bias);
}

void SequenceKernel::backward(const SequenceInput& in, const Weights& w, const SequenceSaved& saved,
    const float* dy, const float* d_ffn_input, float* dx, const SequenceWeights<float>& d) {
  const auto steps = static_cast<std::size_t>(shape_.steps);
  d_wide_.resize(wide_.size() * (shape_.gated ? 2 : 1));
  d_normed_.resize(normed_.size());
  d_qkv_.resize(steps * static_cast<std::size_t>(shape_.d_all()));
  d_attended_.resize(steps * static_cast<std::size_t>(shape_.d_query()));
  feed_forward_backward(w, in.row, saved, dy, d_ffn_input, dx, d);
  attend_backward(in, w, saved, dx, d);
}

}  // namespace nn
