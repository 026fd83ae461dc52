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
#include "nn/layers/real_first.h"

namespace nn {

class LayerMemory : public RealFirst {
 public:
  /// Resets the batch's fresh rows. `state` may be null: nothing is kept.
  LayerMemory(const Batch& batch, State* state);

  /// How many slots extend will put before x.
  std::int64_t remembered(const std::string& name, std::int64_t length) const;
  /// x (B, T, d) packed, what layer `name` reads -> (B, C + T, d): what it read before, then x. Of
  /// both together the newest `length` are kept. Once a name and call; d is always the same.
  torch::Tensor extend(const std::string& name, const torch::Tensor& x, std::int64_t length);
  /// The first of C remembered slots that means something, in each row: (B) int64 on the CPU;
  /// undefined if all do in all rows.
  torch::Tensor first_valid(std::int64_t remembered) const;

 private:
  State* state_;
  std::int64_t steps_;
  torch::Tensor seen_;  // (B) int64: before this call
};

}  // namespace nn
