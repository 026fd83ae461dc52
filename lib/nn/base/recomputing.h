#pragma once
// Memory for time: blocks that are computed again in the backward pass.

namespace nn {

/// What an architecture also is if it is made of blocks that can be computed again.
class RecomputingBlocks {
 public:
  virtual ~RecomputingBlocks() = default;
  /// From the next forward on: in training with gradients only a block's input is kept, and the
  /// rest is computed again in the backward pass, with the same dropout. All blocks but a stack's
  /// last, whose backward pass comes first. No gradient goes through the State then.
  virtual void recompute_blocks(bool on) = 0;
};

}  // namespace nn
