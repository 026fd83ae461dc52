#pragma once
// The recurrence of SRU++ for one row and a range of its channels, forward and backward.

#include <cstdint>

namespace nn {

/// Pointers to one row of T steps and d channels; a step of `gates` holds u0, u1, u2 (3 d).
template <class Float>
struct SruRow {
  std::int64_t steps, d;
  const Float *gates, *x;  // (T, 3 d), (T, d)
  const Float* start;      // (d): the cell before the first step
  const Float* dropout;    // (d), or null: 1
  const Float *forget, *highway, *forget_bias, *highway_bias;  // (d)
};

/// Writes cells (T, d) and h (T, d), channels [begin, end) only.
template <class Float>
void sru_forward(const SruRow<Float>& row, std::int64_t begin, std::int64_t end, Float* cells,
                 Float* h);

/// Gradients of one row. d_last (d): of the last cell, or null; d_cells is overwritten.
template <class Float>
struct SruGradients {
  const Float *d_h, *d_last;       // (T, d), (d)
  Float *d_gates, *d_x, *d_start;  // (T, 3 d), (T, d), (d)
  Float* d_weights;                // (4, d): forget, highway, forget_bias, highway_bias
};

/// Writes the gradients of channels [begin, end), at most kSruChannels of them.
template <class Float>
void sru_backward(const SruRow<Float>& row, std::int64_t begin, std::int64_t end,
                  const Float* cells, const SruGradients<Float>& gradients);

inline constexpr std::int64_t kSruChannels = 128;

}  // namespace nn
