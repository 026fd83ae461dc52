#pragma once
// Keys and values of rows of text that grow, for a device: no size and no parameter of an operator
// depends on how many tokens there are, so that a call is the same operators each time.

#include <map>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#include "nn/layers/kv_cache.h"

namespace nn {

/// Where the T tokens of a call stand; int64 on the device. Rows that are fed fewer have padding
/// behind their own.
struct RingPlace {
  torch::Tensor position;  ///< (B, T): the row's tokens before it; of padding any
  torch::Tensor slot;      ///< (B, T): where they are kept, those of a row one behind the other
  torch::Tensor last;   ///< (B, 1): position of the row's newest token, this call's too; -1: none
  torch::Tensor first;  ///< (B, 1): of the oldest one that is seen
  torch::Tensor count;  ///< (B, 1): the row's tokens of this call, those before its padding
  bool full = false;    ///< known beforehand: every row has T
};

/// C slots a row: the token at position p lies in slot p mod C. C must be at least what a row holds
/// before a call, and T more. Then nobody sees what stands beyond the last token, of padding or
/// taken back.
class KvRing : public KeyValues {
 public:
  explicit KvRing(std::int64_t slots) : slots_(slots) {}

  /// Of the tokens of the calls that follow.
  void place(RingPlace place) { place_ = std::move(place); }
  const RingPlace& place() const { return place_; }
  /// (B, C) int64: the position whose token each slot holds; below place().first: none.
  torch::Tensor held() const;

  torch::Tensor extend(const std::string& name, const torch::Tensor& fresh) override;
  bool keeps() const override { return true; }

  std::int64_t slots() const { return slots_; }  ///< C
  /// More slots, for what rows hold whose newest tokens stand at `last` (B, 1).
  void grow(std::int64_t slots, const torch::Tensor& last);
  /// Row i becomes what row rows[i] (int64, on the device) was; as many as before stay where they
  /// are in memory.
  void select(const torch::Tensor& rows);

 private:
  std::int64_t slots_;
  RingPlace place_;
  std::map<std::string, torch::Tensor> buffers_;  // (B, heads, C, width)
};

}  // namespace nn
