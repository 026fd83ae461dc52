#pragma once
// A causal depthwise convolution over a few steps, followed by swish or nothing. The loops process
// all channels of one step at a time.

#include <cstdint>

namespace nn {

/// B rows of T steps of `width` channels. Channels of x are contiguous; its strides are x_step and
/// x_row. All other arrays are contiguous.
template <class Real> struct SwishConvolution {
  std::int64_t steps, width, taps;
  const Real* x;
  std::int64_t x_row, x_step;
  const Real* past;    // (B, taps - 1, width): the previous steps
  const Real* weight;  // (taps, width); the last row is for the step itself
  const Real* bias;    // (width)
  bool swish;          // false: y = z
};

/// Writes row `row` of y (B, T, width).
template <class Real>
void swish_convolution_forward(const SwishConvolution<Real>& in, std::int64_t row, Real* y);

/// Gradients. Input: d_y (B, T, width). Outputs: dx (B, T, width), d_past with past's layout, and
/// d_weight (B, taps, width) and d_bias (B, width) per row; the caller sums
/// over B.
template <class Real> struct SwishConvolutionGradients {
  const Real* d_y;
  Real *dx, *d_past, *d_weight, *d_bias;
};

/// Computes the gradients of row `row`. `work` holds 2 width numbers.
template <class Real>
void swish_convolution_backward(const SwishConvolution<Real>& in, std::int64_t row,
    const SwishConvolutionGradients<Real>& g, Real* work);

}  // namespace nn
