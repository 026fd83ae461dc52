#pragma once
// The past of each layer, with a separate length per layer (Transformer-XL, SRU++): its inputs, or
// data computed from them.
//
// A call packs each row's real tokens to the front, so that layers see rows without gaps. A row's
// padding then follows its tokens and is never read.
//
//   State::tensors  "seen" (B) int64, on the CPU: tokens of the row since it was fresh
//                   NAME + ".memory" (B, C, d): the arguments of extend(), the newest last. C is at
//                   most the layer's length. A row that has seen fewer than C tokens has them at
//                   the end; earlier values are finite and meaningless.

#include <cstdint>
#include <string>

#include "nn/base/batch.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"
#include "nn/layers/kv_ring.h"
#include "nn/layers/real_first.h"

namespace nn {

/// Past inputs of layers, from this call and earlier ones.
class LayerPast {
 public:
  virtual ~LayerPast() = default;
  /// Returns the number of slots that extend() puts before x.
  virtual std::int64_t remembered(const std::string& name, std::int64_t length) const = 0;
  /// Appends x (B, T, d), the input of layer `name`, and returns (B, C + T, d): the past input,
  /// then x. Keeps the newest `length` of both. Call it once for each name in a call; d is constant
  /// for a name.
  virtual torch::Tensor extend(const std::string& name, const torch::Tensor& x,
                               std::int64_t length) = 0;
  /// Returns the first valid slot of C remembered ones in each row: (B) int64; undefined if all
  /// slots are valid.
  virtual torch::Tensor first_valid(std::int64_t remembered) const = 0;
};

/// Past inputs for rows that grow with fixed operators on fixed memory: C equals the length from
/// the first call on, and no data are on the CPU. `kept` contains only NAME + ".memory".
class FixedLayerPast : public LayerPast {
 public:
  FixedLayerPast(const RingPlace& place, State& kept) : place_(place), kept_(kept) {}
  std::int64_t remembered(const std::string& /*name*/, std::int64_t length) const override {
    return length;
  }
  torch::Tensor extend(const std::string& name, const torch::Tensor& x,
                       std::int64_t length) override;
  torch::Tensor first_valid(std::int64_t remembered) const override;

 private:
  const RingPlace& place_;
  State& kept_;
};

class LayerMemory : public RealFirst, public LayerPast {
 public:
  /// Resets the batch's fresh rows. With a null `state`, nothing is kept.
  LayerMemory(const Batch& batch, State* state);

  std::int64_t remembered(const std::string& name, std::int64_t length) const override;
  /// Requires packed x.
  torch::Tensor extend(const std::string& name, const torch::Tensor& x,
                       std::int64_t length) override;
  /// Returns a tensor on the CPU.
  torch::Tensor first_valid(std::int64_t remembered) const override;

 private:
  State* state_;
  std::int64_t steps_;
  torch::Tensor seen_;  // (B) int64: before this call
};

}  // namespace nn
