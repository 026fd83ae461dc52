#include "nn/fused_block_kernels.h"

#include <algorithm>
#include <cmath>

#include "nn/gemm.h"
#include "nn/vector_math.h"

namespace nn {
namespace {

constexpr std::int64_t kChunk =
    128;  // rows of the FFN at a time: 128 x inner floats stay in the second-level cache

// out = (x - mean) / std * w + b, a row at a time.
void normalise(const float* x, std::int64_t rows, std::int64_t width, const float* w,
               const float* b, float epsilon, float* out) {
  for (std::int64_t i = 0; i < rows; ++i, x += width, out += width) {
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < width; ++c) sum += x[c];
    const float mean = sum / static_cast<float>(width);
#pragma omp simd reduction(+ : squares)
    for (std::int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const float scale = 1 / std::sqrt(squares / static_cast<float>(width) + epsilon);
    if (b) {
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) out[c] = (x[c] - mean) * scale * w[c] + b[c];
    } else {
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) out[c] = (x[c] - mean) * scale * w[c];
    }
  }
}

// dx += gradient through normalise; dw, db gain their sums. `d` is dL/d out.
void normalise_backward(const float* x, const float* d, std::int64_t rows, std::int64_t width,
                        const float* w, float epsilon, float* dx, float* dw, float* db) {
  const float n = static_cast<float>(width);
  for (std::int64_t i = 0; i < rows; ++i, x += width, d += width, dx += width) {
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < width; ++c) sum += x[c];
    const float mean = sum / n;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const float scale = 1 / std::sqrt(squares / n + epsilon);
    float first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
    for (std::int64_t c = 0; c < width; ++c) {
      const float hat = (x[c] - mean) * scale, g = d[c] * w[c];
      first += g;
      second += g * hat;
    }
    first /= n, second /= n;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const float hat = (x[c] - mean) * scale;
      dx[c] += scale * (d[c] * w[c] - first - hat * second);
      dw[c] += d[c] * hat;
    }
    if (db) {
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) db[c] += d[c];
    }
  }
}

void fill_rows(const float* bias, std::int64_t rows, std::int64_t width, float* out) {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (bias) {
      std::copy(bias, bias + width, out + i * width);
    } else {
      std::fill(out + i * width, out + (i + 1) * width, 0.0f);
    }
  }
}

void add_column_sums(const float* x, std::int64_t rows, std::int64_t width, float* out) {
  if (!out) return;
  for (std::int64_t i = 0; i < rows; ++i, x += width) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) out[c] += x[c];
  }
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

}  // namespace

SequenceKernel::SequenceKernel(const SequenceShape& s)
    : shape_(s),
      attention_(s.steps, s.width / s.heads, 3 * s.width, s.width,
                 1 / std::sqrt(static_cast<float>(s.width / s.heads))),
      normed_(static_cast<std::size_t>(s.steps * s.width)),
      wide_(static_cast<std::size_t>(std::min(kChunk, s.steps) * s.inner)) {}

void SequenceKernel::feed_forward(const float* middle, const SequenceWeights<const float>& w,
                                  std::uint64_t row, float* hidden, float* y, float* ffn_input) {
  const std::int64_t d = shape_.width, inner = shape_.inner;
  const Dropout keep(shape_.dropout, shape_.seed, row, 1);
  for (std::int64_t begin = 0; begin < shape_.steps; begin += kChunk) {
    const std::int64_t rows = std::min(kChunk, shape_.steps - begin);
    float* const input = ffn_input ? ffn_input + begin * d : normed_.data();
    float* const h = hidden + begin * inner;
    float* const out = y + begin * d;
    const float* const m = middle + begin * d;
    normalise(m, rows, d, w.norm2, w.norm2_bias, shape_.epsilon, input);
    fill_rows(w.expand_bias, rows, inner, h);
    gemm(Op::plain, Op::transposed, rows, inner, d, 1, input, d, w.expand, d, 1, h, inner);
    float* const a = wide_.data();
    if (shape_.gelu) {
#pragma omp simd
      for (std::int64_t i = 0; i < rows * inner; ++i) a[i] = vec::gelu(h[i]);
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < rows * inner; ++i) a[i] = h[i] > 0 ? h[i] : 0;
    }
    fill_rows(w.reduce_bias, rows, d, out);
    gemm(Op::plain, Op::transposed, rows, d, inner, 1, a, inner, w.reduce, inner, 1, out, d);
    const auto base = static_cast<std::uint32_t>(begin * d);
    if (shape_.dropout > 0) {
#pragma omp simd
      for (std::int64_t i = 0; i < rows * d; ++i)
        out[i] = m[i] + out[i] * keep(base + static_cast<std::uint32_t>(i));
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < rows * d; ++i) out[i] += m[i];
    }
  }
}

void SequenceKernel::forward(const float* x, const SequenceWeights<const float>& w,
                             std::uint64_t row, const SequenceSaved& saved, float* y,
                             float* ffn_input) {
  const std::int64_t t = shape_.steps, d = shape_.width, per_head = d / shape_.heads;
  normalise(x, t, d, w.norm1, w.norm1_bias, shape_.epsilon, normed_.data());
  fill_rows(w.qkv_bias, t, 3 * d, saved.qkv);
  gemm(Op::plain, Op::transposed, t, 3 * d, d, 1, normed_.data(), d, w.qkv, d, 1, saved.qkv, 3 * d);
  for (std::int64_t h = 0; h < shape_.heads; ++h) {
    const float* const q = saved.qkv + h * per_head;
    attention_.forward(q, q + d, q + 2 * d, saved.attended + h * per_head, saved.log_sums + h * t);
  }
  fill_rows(w.project_bias, t, d, saved.middle);
  gemm(Op::plain, Op::transposed, t, d, d, 1, saved.attended, d, w.project, d, 1, saved.middle, d);
  const Dropout keep(shape_.dropout, shape_.seed, row, 0);
  if (shape_.dropout > 0) {
#pragma omp simd
    for (std::int64_t i = 0; i < t * d; ++i)
      saved.middle[i] = x[i] + saved.middle[i] * keep(static_cast<std::uint32_t>(i));
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < t * d; ++i) saved.middle[i] += x[i];
  }
  feed_forward(saved.middle, w, row, saved.hidden, y, ffn_input);
}

void SequenceKernel::backward(const float* x, const SequenceWeights<const float>& w,
                              std::uint64_t row, const SequenceSaved& saved, const float* dy,
                              const float* d_ffn_input, float* dx,
                              const SequenceWeights<float>& d) {
  const std::int64_t t = shape_.steps, width = shape_.width, inner = shape_.inner,
                     per_head = width / shape_.heads;
  d_wide_.resize(wide_.size());
  d_normed_.resize(normed_.size());
  d_qkv_.resize(3 * normed_.size());
  d_attended_.resize(normed_.size());
  const Dropout keep_ffn(shape_.dropout, shape_.seed, row, 1),
      keep_attention(shape_.dropout, shape_.seed, row, 0);

  // FFN, a chunk of rows at a time. dx gathers the gradient of the residual stream, first at
  // `middle`.
  for (std::int64_t begin = 0; begin < t; begin += kChunk) {
    const std::int64_t rows = std::min(kChunk, t - begin), n = rows * width;
    const float* const m = saved.middle + begin * width;
    const float* const h = saved.hidden + begin * inner;
    const float* d_out = dy + begin * width;
    float* const into = dx + begin * width;
    std::copy(d_out, d_out + n, into);
    float* const d_input =
        d_normed_.data();  // first the dropped gradient, then the gradient of the FFN's input
    if (shape_.dropout > 0) {
      const auto base = static_cast<std::uint32_t>(begin * width);
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i)
        d_input[i] = d_out[i] * keep_ffn(base + static_cast<std::uint32_t>(i));
      d_out = d_input;
    }
    float *const a = wide_.data(), *const da = d_wide_.data();
    gemm(Op::plain, Op::plain, rows, inner, width, 1, d_out, width, w.reduce, inner, 0, da, inner);
    if (shape_.gelu) {
#pragma omp simd
      for (std::int64_t i = 0; i < rows * inner; ++i) {
        const float v = h[i], th = vec::tanh(vec::kGeluA * (v + vec::kGeluB * v * v * v));
        a[i] = 0.5f * v * (1.0f + th);
        da[i] *= 0.5f * (1.0f + th) +
                 0.5f * v * (1.0f - th * th) * vec::kGeluA * (1.0f + 3.0f * vec::kGeluB * v * v);
      }
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < rows * inner; ++i) {
        a[i] = h[i] > 0 ? h[i] : 0;
        da[i] = h[i] > 0 ? da[i] : 0;
      }
    }
    gemm(Op::transposed, Op::plain, width, inner, rows, 1, d_out, width, a, inner, 1, d.reduce,
         inner);
    add_column_sums(d_out, rows, width, d.reduce_bias);
    normalise(m, rows, width, w.norm2, w.norm2_bias, shape_.epsilon, normed_.data());
    gemm(Op::transposed, Op::plain, inner, width, rows, 1, da, inner, normed_.data(), width, 1,
         d.expand, width);
    add_column_sums(da, rows, inner, d.expand_bias);
    gemm(Op::plain, Op::plain, rows, width, inner, 1, da, inner, w.expand, width, 0, d_input,
         width);
    if (d_ffn_input) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) d_input[i] += d_ffn_input[begin * width + i];
    }
    normalise_backward(m, d_input, rows, width, w.norm2, shape_.epsilon, into, d.norm2,
                       d.norm2_bias);
  }

  // Attention.
  const float* d_projected = dx;
  if (shape_.dropout > 0) {
#pragma omp simd
    for (std::int64_t i = 0; i < t * width; ++i)
      d_normed_[i] = dx[i] * keep_attention(static_cast<std::uint32_t>(i));
    d_projected = d_normed_.data();
  }
  gemm(Op::transposed, Op::plain, width, width, t, 1, d_projected, width, saved.attended, width, 1,
       d.project, width);
  add_column_sums(d_projected, t, width, d.project_bias);
  gemm(Op::plain, Op::plain, t, width, width, 1, d_projected, width, w.project, width, 0,
       d_attended_.data(), width);
  for (std::int64_t h = 0; h < shape_.heads; ++h) {
    const float* const q = saved.qkv + h * per_head;
    float* const dq = d_qkv_.data() + h * per_head;
    attention_.backward(q, q + width, q + 2 * width, saved.attended + h * per_head,
                        saved.log_sums + h * t, d_attended_.data() + h * per_head, dq, dq + width,
                        dq + 2 * width);
  }
  normalise(x, t, width, w.norm1, w.norm1_bias, shape_.epsilon, normed_.data());
  gemm(Op::transposed, Op::plain, 3 * width, width, t, 1, d_qkv_.data(), 3 * width, normed_.data(),
       width, 1, d.qkv, width);
  add_column_sums(d_qkv_.data(), t, 3 * width, d.qkv_bias);
  gemm(Op::plain, Op::plain, t, width, 3 * width, 1, d_qkv_.data(), 3 * width, w.qkv, width, 0,
       d_normed_.data(), width);
  normalise_backward(x, d_normed_.data(), t, width, w.norm1, shape_.epsilon, dx, d.norm1,
                     d.norm1_bias);
}

}  // namespace nn
