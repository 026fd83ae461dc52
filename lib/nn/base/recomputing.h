#pragma once
// Recomputes blocks in the backward pass, which trades time for memory.

namespace nn {

/// Additional interface of architectures whose blocks can be recomputed.
class RecomputingBlocks {
 public:
  virtual ~RecomputingBlocks() = default;
  /// Takes effect at the next forward. In training with gradients only a block's input is kept; the
  /// rest is recomputed in the backward pass with the same dropout. A stack's last block is not
  /// recomputed, because its backward pass comes first. No gradient flows through the State then.
  virtual void recompute_blocks(bool on) = 0;
};

}  // namespace nn
