#pragma once
// Recomputes blocks in the backward pass, which trades time for memory. The weights of blocks need
// not be in memory all the time.
// Computes products in another type than that of the weights.

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "core/base.h"
#include "nn/base/torch.h"
#include "nn/kernels/gemm.h"

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

/// Makes the weights of blocks present for as long as a block computes. Weights are those that
/// block_weights() returned for the block.
class WeightLender {
 public:
  virtual ~WeightLender() = default;
  /// lend() returns when the weights have their values, until take_back().
  virtual void lend(const std::vector<torch::Tensor>& weights) = 0;
  virtual void take_back(const std::vector<torch::Tensor>& weights) = 0;
  /// Offers the gradients of a block's weights, in the backward pass, before take_back(); undefined
  /// for a gradient of 0. Gradients that it resets are not added to those of the weights.
  virtual void offer(
      const std::vector<torch::Tensor>& weights, std::vector<torch::Tensor>& gradients) = 0;
};

/// What an architecture also is if only its blocks read the blocks' weights.
class LendingBlocks {
 public:
  virtual ~LendingBlocks() = default;
  /// Returns the weights that each block alone reads.
  virtual std::vector<std::vector<torch::Tensor>> block_weights() const = 0;
  /// From the next forward on, in training with gradients: all blocks but the last recompute, and
  /// borrow their weights for the forward and for the backward pass. The last borrows its weights
  /// in the forward pass and never returns them. Null: no lender.
  virtual void lend_weights(std::shared_ptr<WeightLender> lender) = 0;
};

/// During its lifetime, products have the type of their factors, also under Autocast and
/// RoundedProducts.
struct ExactProducts {
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  RoundedProducts not_rounded{false};
};

/// During its lifetime, if `on`, products on the device are computed in `type`. Weights and sums
/// stay float32.
class Autocast {
 public:
  Autocast(bool on, torch::Device device, torch::ScalarType type = torch::kBFloat16)
      : on_(on), device_(device.type()) {
    if (!on_) return;
    was_on_ = at::autocast::is_autocast_enabled(device_);
    was_type_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, type);
  }
  ~Autocast() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_on_);
    at::autocast::set_autocast_dtype(device_, was_type_);
  }
  Autocast(Autocast&&) = delete;

 private:
  bool on_, was_on_ = false;
  torch::DeviceType device_;
  torch::ScalarType was_type_ = torch::kFloat32;
};

}  // namespace nn
