#pragma once
// The past of each layer, a length of its own for each (Transformer-XL, SRU++): its inputs, or what
// it made of them.
//
// A call packs each row's real tokens to the front, so that layers see rows without gaps; a row's
// padding then stands behind its tokens, where nothing looks.
//
//   State::tensors  "seen" (B) int64, on the CPU: tokens of the row since it was fresh
//                   NAME + ".memory" (B, C, d): what extend was given, the newest last, C at most
//                   the layer's length. A row that has seen fewer than C has them at the end; what
//                   stands before them is finite and means nothing.

#include <cstdint>
#include <string>

#include "nn/base/batch.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"
#include "nn/layers/kv_ring.h"
#include "nn/layers/real_first.h"

namespace nn {

/// What layers remember of a call and of those before it.
class LayerPast {
 public:
  virtual ~LayerPast() = default;
  /// How many slots extend will put before x.
  virtual std::int64_t remembered(const std::string& name, std::int64_t length) const = 0;
  /// x (B, T, d), what layer `name` reads -> (B, C + T, d): what it read before, then x. Of both
  /// together the newest `length` are kept. Once a name and call; d is always the same.
  virtual torch::Tensor extend(const std::string& name, const torch::Tensor& x,
                               std::int64_t length) = 0;
  /// The first of C remembered slots that means something, in each row: (B) int64; undefined if all
  /// do in all rows.
  virtual torch::Tensor first_valid(std::int64_t remembered) const = 0;
};

/// The same of rows whose texts grow by as many operators on as much memory each time: C is the
/// length from the first call on, and nothing is on the CPU. `kept` has NAME + ".memory" alone.
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
  /// Resets the batch's fresh rows. `state` may be null: nothing is kept.
  LayerMemory(const Batch& batch, State* state);

  std::int64_t remembered(const std::string& name, std::int64_t length) const override;
  /// x is packed.
  torch::Tensor extend(const std::string& name, const torch::Tensor& x,
                       std::int64_t length) override;
  /// On the CPU.
  torch::Tensor first_valid(std::int64_t remembered) const override;

 private:
  State* state_;
  std::int64_t steps_;
  torch::Tensor seen_;  // (B) int64: before this call
};

}  // namespace nn
