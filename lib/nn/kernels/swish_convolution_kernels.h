#pragma once
// A causal convolution over few steps, each channel by itself, and its swish: rows of steps, all
// channels of a step at a time.

#include <cstdint>

namespace nn {

/// B rows of T steps of `width` channels. Channels of x are contiguous, its steps x_step apart and
/// its rows x_row; everything else is contiguous.
template <class Real>
struct SwishConvolution {
  std::int64_t steps, width, taps;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real* past;    // (B, taps - 1, width): the steps before
  const Real* weight;  // (taps, width), that of the step itself last
};

/// Row `row` of y (B, T, width).
template <class Real>
void swish_convolution_forward(const SwishConvolution<Real>& in, std::int64_t row, Real* y);

/// d_y (B, T, width). Written: dx (B, T, width), d_past as past, d_weight (B, taps, width), a row's
/// part: the caller adds up.
template <class Real>
struct SwishConvolutionGradients {
  const Real* d_y;
  Real *dx, *d_past, *d_weight;
};

/// Of row `row`. `work`: 2 width numbers.
template <class Real>
void swish_convolution_backward(const SwishConvolution<Real>& in, std::int64_t row,
                                const SwishConvolutionGradients<Real>& g, Real* work);

}  // namespace nn
