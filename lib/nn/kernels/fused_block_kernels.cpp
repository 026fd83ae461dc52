#include "nn/kernels/fused_block_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/gemm.h"
#include "nn/kernels/row_math.h"

namespace nn {
namespace {

// Rows of the FFN at a time: 128 x inner floats stay in the second-level cache.
constexpr std::int64_t kChunk = 128;

void layer_norm(const Matrix& x, const float* weight, const float* bias, float epsilon,
                const MatrixOut& y) {
  for (std::int64_t i = 0; i < x.rows; ++i)
    vec::layer_norm(x.row(i), weight, bias, x.columns, epsilon, y.row(i));
}

// dx += gradient through layer_norm; d_weight, d_bias gain their sums. `d` is dL/dy.
void layer_norm_backward(const Matrix& x, const Matrix& d, const float* weight, float epsilon,
                         const MatrixOut& dx, float* d_weight, float* d_bias) {
  for (std::int64_t i = 0; i < x.rows; ++i)
    vec::layer_norm_backward(x.row(i), d.row(i), weight, x.columns, epsilon, dx.row(i), d_weight,
                             d_bias);
}

// y = x W^T + bias: x (n, in), W (out, in), y (n, out); bias (out) may be null.
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

// dW += dy^T x: x (n, in), dy (n, out), dW (out, in); d_bias (out), if not null, gains dy's sums.
void affine_weights_backward(const Matrix& x, const Matrix& dy, const MatrixOut& dw,
                             float* d_bias) {
  product(transposed(dy), x, dw, Into::sum);
  for (std::int64_t i = 0; d_bias != nullptr && i < dy.rows; ++i)
    vec::add(dy.row(i), dy.columns, d_bias);
}

// Dropout masks are not stored: a counter hashed with the call's seed gives the same mask again in
// backward.
struct Dropout {
  std::uint32_t key, threshold;
  float scale;

  Dropout(float p, std::uint64_t seed, std::uint64_t row, std::uint64_t site) {
    std::uint64_t x = seed + 0x9e3779b97f4a7c15u * (2 * row + site + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    key = static_cast<std::uint32_t>(x ^ (x >> 31));
    threshold = static_cast<std::uint32_t>(static_cast<double>(p) * 4294967295.0);
    scale = 1 / (1 - p);
  }
  float operator()(std::uint32_t i) const {
    std::uint32_t h = (i ^ key) * 0x9e3779b1u;
    h = (h ^ (h >> 16)) * 0x21f0aaadu;
    h = (h ^ (h >> 15)) * 0x735a2d97u;
    h ^= h >> 15;
    return h >= threshold ? scale : 0.0f;
  }
};
constexpr std::uint64_t kAttentionSite = 0, kFeedForwardSite = 1;

// y = x + dropout(y), n elements, the first of which is number `first` of the sequence.
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

// dL/d y of add_residual from dL/d its result; `room` (n) is for it where there is dropout.
const float* residual_backward(const float* d, std::int64_t n, std::int64_t first, float dropout,
                               const Dropout& keep, float* room) {
  if (dropout == 0) return d;
  const auto base = static_cast<std::uint32_t>(first);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) room[i] = d[i] * keep(base + static_cast<std::uint32_t>(i));
  return room;
}

void activate(const float* h, std::int64_t n, bool gelu, float* a) {
  if (gelu) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) a[i] = vec::gelu(h[i]);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) a[i] = h[i] > 0 ? h[i] : 0;
  }
}

// a = activation(h) again; da, dL/da, becomes dL/dh.
void activate_backward(const float* h, std::int64_t n, bool gelu, float* a, float* da) {
  if (gelu) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const float v = h[i], th = vec::tanh(vec::kGeluA * (v + vec::kGeluB * v * v * v));
      a[i] = 0.5f * v * (1.0f + th);
      da[i] *= 0.5f * (1.0f + th) +
               0.5f * v * (1.0f - th * th) * vec::kGeluA * (1.0f + 3.0f * vec::kGeluB * v * v);
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      a[i] = h[i] > 0 ? h[i] : 0;
      da[i] = h[i] > 0 ? da[i] : 0;
    }
  }
}

}  // namespace

SequenceKernel::SequenceKernel(const SequenceShape& s)
    : shape_(s),
      attention_(s.steps, 1 / std::sqrt(static_cast<float>(s.head_width()))),
      normed_(static_cast<std::size_t>(s.steps * s.width)),
      wide_(static_cast<std::size_t>(std::min(kChunk, s.steps) * s.inner)) {}

template <class Float>
MatrixOf<Float> SequenceKernel::head_of(Float* qkv, std::int64_t which, std::int64_t h) const {
  const std::int64_t d = shape_.width, width = shape_.head_width();
  return {qkv + which * d + h * width, shape_.steps, width, 3 * d};
}

template <class Float>
MatrixOf<Float> SequenceKernel::head_of(Float* attended, std::int64_t h) const {
  const std::int64_t d = shape_.width, width = shape_.head_width();
  return {attended + h * width, shape_.steps, width, d};
}

// saved.middle = x + dropout(project(attention(norm1(x)))).
void SequenceKernel::attend(const float* x, const Weights& w, std::uint64_t row,
                            const SequenceSaved& saved) {
  const std::int64_t t = shape_.steps, d = shape_.width;
  const MatrixOut normed(normed_.data(), t, d), qkv(saved.qkv, t, 3 * d),
      middle(saved.middle, t, d);
  layer_norm({x, t, d}, w.norm1, w.norm1_bias, shape_.epsilon, normed);
  affine(normed, {w.qkv, 3 * d, d}, w.qkv_bias, qkv);
  for (std::int64_t h = 0; h < shape_.heads; ++h)
    attention_.forward(
        {head_of(saved.qkv, 0, h), head_of(saved.qkv, 1, h), head_of(saved.qkv, 2, h)},
        head_of(saved.attended, h), saved.log_sums + h * t);
  affine(Matrix(saved.attended, t, d), {w.project, d, d}, w.project_bias, middle);
  const Dropout keep(shape_.dropout, shape_.seed, row, kAttentionSite);
  add_residual(x, t * d, 0, shape_.dropout, keep, saved.middle);
}

// y = middle + dropout(reduce(activation(expand(norm2(middle))))), a chunk of rows at a time.
void SequenceKernel::feed_forward(const Weights& w, std::uint64_t row, const SequenceSaved& saved,
                                  float* y, float* ffn_input) {
  const std::int64_t d = shape_.width, inner = shape_.inner;
  const Dropout keep(shape_.dropout, shape_.seed, row, kFeedForwardSite);
  for (std::int64_t begin = 0; begin < shape_.steps; begin += kChunk) {
    const std::int64_t n = std::min(kChunk, shape_.steps - begin);
    const Matrix middle(saved.middle + begin * d, n, d);
    const MatrixOut input(ffn_input != nullptr ? ffn_input + begin * d : normed_.data(), n, d),
        hidden(saved.hidden + begin * inner, n, inner), active(wide_.data(), n, inner),
        out(y + begin * d, n, d);
    layer_norm(middle, w.norm2, w.norm2_bias, shape_.epsilon, input);
    affine(input, {w.expand, inner, d}, w.expand_bias, hidden);
    activate(hidden.data, n * inner, shape_.gelu, active.data);
    affine(active, {w.reduce, d, inner}, w.reduce_bias, out);
    add_residual(middle.data, n * d, begin * d, shape_.dropout, keep, out.data);
  }
}

void SequenceKernel::forward(const float* x, const Weights& w, std::uint64_t row,
                             const SequenceSaved& saved, float* y, float* ffn_input) {
  attend(x, w, row, saved);
  feed_forward(w, row, saved, y, ffn_input);
}

// dx = dL/d middle, a chunk of rows at a time.
void SequenceKernel::feed_forward_backward(const Weights& w, std::uint64_t row,
                                           const SequenceSaved& saved, const float* dy,
                                           const float* d_ffn_input, float* dx,
                                           const SequenceWeights<float>& d) {
  const std::int64_t width = shape_.width, inner = shape_.inner;
  const Matrix expand(w.expand, inner, width), reduce(w.reduce, width, inner);
  const Dropout keep(shape_.dropout, shape_.seed, row, kFeedForwardSite);
  for (std::int64_t begin = 0; begin < shape_.steps; begin += kChunk) {
    const std::int64_t n = std::min(kChunk, shape_.steps - begin);
    const Matrix middle(saved.middle + begin * width, n, width),
        hidden(saved.hidden + begin * inner, n, inner);
    const MatrixOut into(dx + begin * width, n, width), active(wide_.data(), n, inner),
        d_hidden(d_wide_.data(), n, inner), normed(normed_.data(), n, width),
        d_input(d_normed_.data(), n, width);
    std::copy(dy + begin * width, dy + (begin + n) * width, into.data);

    // d_input holds the dropped gradient first, then that of the FFN's input.
    const Matrix d_out(residual_backward(dy + begin * width, n * width, begin * width,
                                         shape_.dropout, keep, d_input.data),
                       n, width);
    product(d_out, reduce, d_hidden);
    activate_backward(hidden.data, n * inner, shape_.gelu, active.data, d_hidden.data);
    affine_weights_backward(active, d_out, {d.reduce, width, inner}, d.reduce_bias);

    layer_norm(middle, w.norm2, w.norm2_bias, shape_.epsilon, normed);
    affine_weights_backward(normed, d_hidden, {d.expand, inner, width}, d.expand_bias);
    product(d_hidden, expand, d_input);
    if (d_ffn_input != nullptr) vec::add(d_ffn_input + begin * width, n * width, d_input.data);
    layer_norm_backward(middle, d_input, w.norm2, shape_.epsilon, into, d.norm2, d.norm2_bias);
  }
}

// dx comes as dL/d middle and becomes dL/dx.
void SequenceKernel::attend_backward(const float* x, const Weights& w, std::uint64_t row,
                                     const SequenceSaved& saved, float* dx,
                                     const SequenceWeights<float>& d) {
  const std::int64_t t = shape_.steps, width = shape_.width;
  const Matrix in(x, t, width), attended(saved.attended, t, width);
  const MatrixOut d_in(dx, t, width), normed(normed_.data(), t, width),
      d_normed(d_normed_.data(), t, width), d_attended(d_attended_.data(), t, width),
      d_qkv(d_qkv_.data(), t, 3 * width);
  const Dropout keep(shape_.dropout, shape_.seed, row, kAttentionSite);
  const Matrix d_projected(residual_backward(dx, t * width, 0, shape_.dropout, keep, d_normed.data),
                           t, width);
  affine_weights_backward(attended, d_projected, {d.project, width, width}, d.project_bias);
  product(d_projected, Matrix(w.project, width, width), d_attended);

  for (std::int64_t h = 0; h < shape_.heads; ++h)
    attention_.backward(
        {head_of(saved.qkv, 0, h), head_of(saved.qkv, 1, h), head_of(saved.qkv, 2, h)},
        saved.log_sums + h * t,
        {head_of(saved.attended, h), head_of(d_attended.data, h), head_of(d_qkv.data, 0, h),
         head_of(d_qkv.data, 1, h), head_of(d_qkv.data, 2, h)});

  layer_norm(in, w.norm1, w.norm1_bias, shape_.epsilon, normed);
  affine_weights_backward(normed, d_qkv, {d.qkv, 3 * width, width}, d.qkv_bias);
  product(d_qkv, Matrix(w.qkv, 3 * width, width), d_normed);
  layer_norm_backward(in, d_normed, w.norm1, shape_.epsilon, d_in, d.norm1, d.norm1_bias);
}

void SequenceKernel::backward(const float* x, const Weights& w, std::uint64_t row,
                              const SequenceSaved& saved, const float* dy, const float* d_ffn_input,
                              float* dx, const SequenceWeights<float>& d) {
  d_wide_.resize(wide_.size());
  d_normed_.resize(normed_.size());
  d_qkv_.resize(3 * normed_.size());
  d_attended_.resize(normed_.size());
  feed_forward_backward(w, row, saved, dy, d_ffn_input, dx, d);
  attend_backward(x, w, row, saved, dx, d);
}

}  // namespace nn
