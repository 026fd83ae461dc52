#pragma once
// The selective scan of Mamba, forward and backward. A piece is a block of channels of one row. See
// selective_scan.h for the formula.

#include <cstdint>

namespace nn {

/// B rows of T steps, contiguous. Pieces are counted from 0, all blocks of a row after each other.
template <class Real> struct SelectiveScan {
  static constexpr std::int64_t kBlock = 64;  // channels of a piece
  static constexpr std::int64_t kPart = 16;   // steps between two states that are kept
  std::int64_t steps, width, n;
  const Real *x, *dt;  // (B, T, width)
  const Real* a;       // (n, width)
  const Real *b, *c;   // (B, T, n)
  Real* states;        // (B, parts + 1, n, width): before the first step, after each part
  Real* y;             // (B, T, width); backward: the gradient
  // Gradients, for backward() only. d_state is that of the last state and becomes that of the
  // first; d_a begins with 0.
  Real *d_state, *d_a;  // (B, n, width)
  Real *d_x, *d_dt;     // (B, T, width)
  Real *d_b, *d_c;      // (B, blocks, T, n)

  static std::int64_t blocks(std::int64_t width) { return (width + kBlock - 1) / kBlock; }
  void forward(std::int64_t piece) const;   ///< writes y, and states but the first
  void backward(std::int64_t piece) const;  ///< writes the gradients
};

}  // namespace nn
