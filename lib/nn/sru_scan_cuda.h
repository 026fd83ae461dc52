#pragma once
// The recurrence of SRU++ on a GPU: what sru_scan_kernels.h does, a thread a channel of a row.
// Compiled where nvcc is installed (cmake/Cuda.cmake); everything else works without it.

#include <cstdint>

namespace nn {

/// Device pointers to contiguous float32 tensors; see sru_scan.h for what they are. dropout (B, d)
/// and steps (B) int64 may be null.
struct SruDeviceScan {
  std::int64_t rows, steps, d;
  const float *gates, *x, *start;
  const float *forget, *highway, *forget_bias, *highway_bias, *dropout;
  const std::int64_t* row_steps;
};

/// Gradients; d_last (B, d) may be null. d_weights (B, 4, d) is a row's part: the caller adds up.
struct SruDeviceGradients {
  const float *d_h, *d_last;
  float *d_gates, *d_x, *d_start, *d_weights;
};

/// Write cells (B, T, d) and h (B, T, d) up to each row's last step, and last (B, d); or the
/// gradients. `stream` is a cudaStream_t. Return a cudaError_t, 0 if the launch went well.
int sru_forward_cuda(const SruDeviceScan& scan, float* cells, float* h, float* last, void* stream);
int sru_backward_cuda(const SruDeviceScan& scan, const float* cells,
                      const SruDeviceGradients& gradients, void* stream);

}  // namespace nn
