#pragma once
// The recurrence of SRU++, forward and backward: on the CPU in pieces, each a row's range of
// channels; on a GPU with a thread a channel of a row. See sru_scan.h for the formula.

#include <cstdint>

namespace nn {

/// B rows of T steps and d channels, contiguous. Row b runs for row_steps[b] of them.
template <class Float>
struct SruInputs {
  std::int64_t rows, steps, d;
  const Float *gates, *x;  // (B, T, 3 d): u0, u1, u2 of a step; (B, T, d)
  const Float* start;      // (B, d): the cell before the first step
  const Float* dropout;    // (B, d), or null: 1
  const Float *forget, *highway, *forget_bias, *highway_bias;  // (d)
  const std::int64_t* row_steps;                               // (B), or null: T each
};

/// Written up to each row's last step.
template <class Float>
struct SruResults {
  Float *cells, *h;  // (B, T, d)
  Float* last;       // (B, d): the cell behind the last step
};

/// d_weights (B, 4, d) is a row's part of forget, highway, forget_bias and highway_bias: the caller
/// adds up.
template <class Float>
struct SruGradients {
  const Float *d_h, *d_last;       // (B, T, d), (B, d) or null
  Float *d_gates, *d_x, *d_start;  // (B, T, 3 d), (B, T, d), (B, d)
  Float* d_weights;
};

/// Pieces that a CPU's threads may share out among them.
std::int64_t sru_pieces(std::int64_t rows, std::int64_t d);

/// The pieces [begin, end).
template <class Float>
void sru_forward_cpu(const SruInputs<Float>& in, const SruResults<Float>& out, std::int64_t begin,
                     std::int64_t end);
template <class Float>
void sru_backward_cpu(const SruInputs<Float>& in, const Float* cells, const SruGradients<Float>& g,
                      std::int64_t begin, std::int64_t end);

/// All of it, pointers being the device's. `stream` is a cudaStream_t. Return a cudaError_t, 0 if
/// the launch went well.
int sru_forward_cuda(const SruInputs<float>& in, const SruResults<float>& out, void* stream);
int sru_backward_cuda(const SruInputs<float>& in, const float* cells, const SruGradients<float>& g,
                      void* stream);

}  // namespace nn
