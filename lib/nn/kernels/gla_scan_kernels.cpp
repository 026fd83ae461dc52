#include "nn/kernels/gla_scan_kernels.h"

#include <algorithm>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

/// S_t = diag(decay_t) S_{t-1} + k_t v_t^T; calls read(i, row i of S_t) for each row.
template <class Float, class Read>
void advance(const GlaHead<Float>& head, std::int64_t t, Float* state, const Read& read) {
  const Float *const k = head.k + t * head.key_stride,
                     *const decay = head.decay + t * head.key_stride,
                     *const v = head.v + t * head.value_stride;
  for (std::int64_t i = 0; i < head.d_key; ++i) {
    Float* const row = state + i * head.d_value;  // (d_value), of (d_key, d_value)
    const Float keep = decay[i], add = k[i];
#pragma omp simd
    for (std::int64_t j = 0; j < head.d_value; ++j) row[j] = keep * row[j] + add * v[j];
    read(i, row);
  }
}

}  // namespace

template <class Float> void gla_forward(const GlaHead<Float>& head, Float* state, Float* o) {
  for (std::int64_t t = 0; t < head.steps; ++t) {
    const Float* const q = head.q + t * head.key_stride;
    Float* const out = o + t * head.value_stride;
    std::fill_n(out, head.d_value, Float(0));
    advance(head, t, state, [&](std::int64_t i, const Float* row) {
#pragma omp simd
      for (std::int64_t j = 0; j < head.d_value; ++j) out[j] += q[i] * row[j];
    });
  }
}

// d_q needs the states in the order of steps, d_k and d_v need the gradients of the states in
// reverse order; no state is stored. With b_t = sum of the log decays to t, q has the factor e^b, k
// has e^-b and the last state has e^b. Hence d log decay_t = sum over s >= t of (q d_q - k d_k)_s +
// rows of (S_T d_S_T) (Yang et al. 2023, section 4).
template <class Float>
void gla_backward(const GlaHead<Float>& head, Float* state, Float* d_state, Float* work,
    const GlaGradients<Float>& g) {
  const auto n = head.d_value;
  for (std::int64_t t = 0; t < head.steps; ++t) {
    const Float* const d_o = g.d_o + t * head.value_stride;
    Float* const d_q = g.d_q + t * head.key_stride;
    advance(
        head, t, state, [&](std::int64_t i, const Float* row) { d_q[i] = vec::dot(row, d_o, n); });
  }
  for (std::int64_t i = 0; i < head.d_key; ++i)
    work[i] = vec::dot(state + i * n, d_state + i * n, n);
  for (std::int64_t t = head.steps - 1; t >= 0; --t) {
    const auto at = t * head.key_stride, value_at = t * head.value_stride;
    const Float *const q = head.q + at, *const k = head.k + at, *const decay = head.decay + at,
                       *const v = head.v + value_at, *const d_o = g.d_o + value_at;
    Float* const d_v = g.d_v + value_at;
    std::fill_n(d_v, n, Float(0));
    for (std::int64_t i = 0; i < head.d_key; ++i) {
      Float* const row = d_state + i * n;  // (d_value), of (d_key, d_value)
      Float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < n; ++j) {
        const Float d = row[j] + q[i] * d_o[j];
        sum += d * v[j];
        d_v[j] += d * k[i];
        row[j] = d * decay[i];
      }
      g.d_k[at + i] = sum;
      work[i] += q[i] * g.d_q[at + i] - k[i] * sum;
      g.d_log_decay[at + i] = work[i];
    }
  }
}

template void gla_forward(const GlaHead<float>&, float*, float*);
template void gla_forward(const GlaHead<double>&, double*, double*);
template void gla_backward(
    const GlaHead<float>&, float*, float*, float*, const GlaGradients<float>&);
template void gla_backward(
    const GlaHead<double>&, double*, double*, double*, const GlaGradients<double>&);

}  // namespace nn
