#include "nn/kernels/swish_convolution_kernels.h"

#include <algorithm>

#include "nn/kernels/row_math.h"

namespace nn {
namespace {

/// Returns step `t` of a row. A negative t is a step of `past`.
template <class Real>
const Real* input(const SwishConvolution<Real>& in, std::int64_t row, std::int64_t t) {
  return t >= 0 ? in.x + row * in.x_row + t * in.x_step
                : in.past + (row * (in.taps - 1) + in.taps - 1 + t) * in.width;
}

/// y += w x, or y = w x.
template <class Real>
void add_product(const Real* w, const Real* x, std::int64_t n, bool first, Real* y) {
  if (first) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = w[i] * x[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] += w[i] * x[i];
  }
}

/// z = the convolution at step t, the input of swish.
template <class Real>
void convolve(const SwishConvolution<Real>& in, std::int64_t row, std::int64_t t, Real* z) {
  for (std::int64_t j = 0; j < in.taps; ++j)
    add_product(in.weight + j * in.width, input(in, row, t - in.taps + 1 + j), in.width, j == 0, z);
#pragma omp simd
  for (std::int64_t i = 0; i < in.width; ++i) z[i] += in.bias[i];
}

}  // namespace

template <class Real>
void swish_convolution_forward(const SwishConvolution<Real>& in, std::int64_t row, Real* y) {
  for (std::int64_t t = 0; t < in.steps; ++t) {
    Real* const out = y + (row * in.steps + t) * in.width;
    convolve(in, row, t, out);
    if (!in.swish) continue;
#pragma omp simd
    for (std::int64_t i = 0; i < in.width; ++i) out[i] = out[i] / (1 + vec::exp(-out[i]));
  }
}

template <class Real>
void swish_convolution_backward(const SwishConvolution<Real>& in, std::int64_t row,
    const SwishConvolutionGradients<Real>& g, Real* work) {
  const auto n = in.width, before = in.taps - 1;
  Real *const d_past = g.d_past + row * before * n, *const d_weight =
                                                        g.d_weight + row * in.taps * n;
  std::fill_n(d_past, before * n, Real(0));
  std::fill_n(d_weight, in.taps * n, Real(0));
  Real* const d_bias = g.d_bias + row * n;
  std::fill_n(d_bias, n, Real(0));
  for (std::int64_t t = 0; t < in.steps; ++t) {
    const Real* const d_y = g.d_y + (row * in.steps + t) * n;
    Real *const z = work, *const d_z = work + n;
    if (in.swish) {
      convolve(in, row, t, z);
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i) {
        const Real share = 1 / (1 + vec::exp(-z[i]));
        d_z[i] = d_y[i] * share * (1 + z[i] * (1 - share));
      }
    } else {
      std::copy_n(d_y, n, d_z);
    }
    for (std::int64_t i = 0; i < n; ++i) d_bias[i] += d_z[i];
    for (std::int64_t j = 0; j < in.taps; ++j) {
      const auto from = t - before + j;
      Real* const dx =
          from >= 0 ? g.dx + (row * in.steps + from) * n : d_past + (before + from) * n;
      // The step's own tap is the first to write dx.
      add_product(in.weight + j * n, d_z, n, /*first=*/j == before, dx);
      add_product(input(in, row, from), d_z, n, /*first=*/false, d_weight + j * n);
    }
  }
}

template void swish_convolution_forward(const SwishConvolution<float>&, std::int64_t, float*);
template void swish_convolution_forward(const SwishConvolution<double>&, std::int64_t, double*);
template void swish_convolution_backward(
    const SwishConvolution<float>&, std::int64_t, const SwishConvolutionGradients<float>&, float*);
template void swish_convolution_backward(const SwishConvolution<double>&, std::int64_t,
    const SwishConvolutionGradients<double>&, double*);

}  // namespace nn
