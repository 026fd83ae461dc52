#pragma once
// The leaky keys of Memory Mosaics on a GPU: what leaky_kernels.h does, the sums with a thread a
// channel of a row, the norms with a warp a head of a step. Compiled where nvcc is installed
// (cmake/Cuda.cmake); everything else works without it.

#include <cstdint>

namespace nn {

/// Device pointers to float32. x: steps of a row stand x_step apart, rows x_row, channels are
/// contiguous; everything else is contiguous. decay, scale (heads); before (B, d) may be null; d is
/// heads * width. See leaky.h for the formula.
struct LeakyDevice {
  std::int64_t rows, steps, heads, width;
  const float* x;
  std::int64_t x_row, x_step;
  const float *decay, *scale, *before;
};

/// d_keys, d_sums (B, T, d), of which one may be null. d_decay (B, d) and d_scale (B, T, heads) are
/// parts: the caller adds up rows, and a head's channels, or steps, in any order it likes.
/// d_before (B, d) is null where before is.
struct LeakyDeviceGradients {
  const float *d_keys, *d_sums;
  float *dx, *d_before, *d_decay, *d_scale;
};

/// Write keys (B, T, d) and norms (B, T, heads); or the gradients, dx (B, T, d). No atomics: the
/// same bits each time. `stream` is a cudaStream_t. Return a cudaError_t, 0 if the launches went
/// well.
int leaky_keys_forward_cuda(const LeakyDevice& leaky, float* keys, float* norms, void* stream);
int leaky_keys_backward_cuda(const LeakyDevice& leaky, const float* keys, const float* norms,
                             const LeakyDeviceGradients& gradients, void* stream);

}  // namespace nn
