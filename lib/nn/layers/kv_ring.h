#pragma once
// Keys and values of growing rows on a device. No size or operator parameter depends on the number
// of tokens, so that each call launches the same operators.

#include <map>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#include "nn/layers/kv_cache.h"

namespace nn {

/// Positions of a call's T tokens; int64 on the device. Rows with fewer tokens are padded at the
/// end.
struct RingPlace {
  torch::Tensor position;  ///< (B, T): number of earlier tokens of the row; any for padding
  torch::Tensor slot;      ///< (B, T): their slots, consecutive within a row
  torch::Tensor last;   ///< (B, 1): position of the row's newest token, this call's too; -1: none
  torch::Tensor first;  ///< (B, 1): of the oldest one that is seen
  torch::Tensor count;  ///< (B, 1): the row's tokens of this call, those before its padding
  bool full = false;    ///< known beforehand: every row has T
};

/// A ring of C slots for each row: slot p mod C contains the token at position p. C must be at
/// least T more than the number of tokens that a row holds before the call. Then no query sees
/// slots beyond the last token, that is, padding or rolled-back tokens.
class KvRing : public KeyValues {
 public:
  explicit KvRing(std::int64_t slots) : slots_(slots) {}

  /// Sets the place of the tokens in the following calls.
  void place(RingPlace place) { place_ = std::move(place); }
  const RingPlace& place() const { return place_; }
  /// Returns (B, C) int64: the position of the token in each slot; values below place().first mark
  /// empty slots.
  torch::Tensor held() const;

  torch::Tensor extend(const std::string& name, const torch::Tensor& fresh) override;
  bool keeps() const override { return true; }

  std::int64_t slots() const { return slots_; }  ///< C
  /// Increases the number of slots; `last` (B, 1) is the position of each row's newest token.
  void grow(std::int64_t slots, const torch::Tensor& last);
  /// Replaces row i by the former row rows[i] (int64, on the device); if the number of rows is
  /// unchanged, addresses are too.
  void select(const torch::Tensor& rows);

 private:
  std::int64_t slots_;
  RingPlace place_;
  std::map<std::string, torch::Tensor> buffers_;  // (B, heads, C, width)
};

}  // namespace nn
