#pragma once
// The recurrence of SRU++, forward and backward. A CPU piece is a range of channels of one row. A
// GPU thread computes one channel of one row. See sru_scan.h for the formula.

#include <cstdint>

namespace nn {

/// B rows of T steps and d channels, contiguous. Row b has row_steps[b] steps.
template <class Float> struct SruInputs {
  std::int64_t rows, steps, d;
  const Float *gates, *x;  // (B, T, 3 d): u0, u1, u2 of each step; (B, T, d)
  const Float* start;      // (B, d): the cell before the first step
  const Float* dropout;    // (B, d), or null for 1
  const Float *forget, *highway, *forget_bias, *highway_bias;  // (d)
  const std::int64_t* row_steps;  // (B), or null for T steps in each row
};

/// Outputs. Only steps up to each row's last step are written.
template <class Float> struct SruResults {
  Float *cells, *h;  // (B, T, d)
  Float* last;       // (B, d): the cell after the last step
};

/// Gradients. d_weights (B, 4, d) holds forget, highway, forget_bias and highway_bias per row; the
/// caller sums over B.
template <class Float> struct SruGradients {
  const Float *d_h, *d_last;       // (B, T, d), (B, d) or null
  Float *d_gates, *d_x, *d_start;  // (B, T, 3 d), (B, T, d), (B, d)
  Float* d_weights;
};

/// Returns the number of pieces that threads may compute independently.
std::int64_t sru_pieces(std::int64_t rows, std::int64_t d);

/// Compute one piece.
template <class Float>
void sru_forward_cpu(const SruInputs<Float>& in, const SruResults<Float>& out, std::int64_t piece);
template <class Float>
void sru_backward_cpu(const SruInputs<Float>& in, const Float* cells, const SruGradients<Float>& g,
    std::int64_t piece);

/// Compute all rows. All pointers are device pointers and `stream` is a cudaStream_t. Both return a
/// cudaError_t, 0 if the launch succeeds.
int sru_forward_cuda(const SruInputs<float>& in, const SruResults<float>& out, void* stream);
int sru_backward_cuda(
    const SruInputs<float>& in, const float* cells, const SruGradients<float>& g, void* stream);

}  // namespace nn
