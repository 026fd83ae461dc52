#pragma once
// Packs rows: each row's real tokens come first, in order, and its padding last.

#include <cstdint>

#include "nn/base/batch.h"
#include "nn/base/torch.h"

namespace nn {

class RealFirst {
 public:
  explicit RealFirst(const Batch& batch);

  /// pack() moves each row's real tokens of (B, T, ...) to the front; unpack() restores the order.
  torch::Tensor pack(const torch::Tensor& x) const;
  torch::Tensor unpack(const torch::Tensor& x) const;
  /// Returns the batch's inputs (B, T), packed, with id 0 for padding.
  torch::Tensor packed_ids(const Batch& batch) const;
  bool dense() const { return !order_.defined(); }       ///< no padding: packed as it is
  const torch::Tensor& count() const { return count_; }  ///< (B) int64, CPU: real tokens

 private:
  torch::Tensor count_;            // (B) int64
  torch::Tensor order_, inverse_;  // (B, T) int64; undefined where dense
};

}  // namespace nn
