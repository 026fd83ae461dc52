#pragma once
// Keys and values of the tokens that a State holds, in slots that all rows and layers share.
//
// Every call appends T slots to each row. A slot is valid in the rows that had a real token there,
// so rows of different lengths and padding anywhere live in one buffer. Buffers grow geometrically;
// with gradient they are concatenated.
//
//   State::tensors  "valid"     (B, C) bool, on the CPU
//                   "position"  (B, C) int64, on the CPU
//                   "seen"      (B) int64, on the CPU
//                   NAME        (B, heads, C, width), a buffer for each name given to extend()
//   State::counts   "begin", "end": the slots in use

#include <optional>
#include <string>

#include "nn/base/batch.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

/// Storage of attention's keys and values across calls.
class KeyValues {
 public:
  virtual ~KeyValues() = default;
  /// Appends fresh (B, heads, T, width) and returns all S slots: (B, heads, S, width). Call it once
  /// for each name in a call.
  virtual torch::Tensor extend(const std::string& name, const torch::Tensor& fresh) = 0;
  virtual bool keeps() const = 0;  ///< whether anything is carried from call to call
};

class KvCache : public KeyValues {
 public:
  /// Resets the batch's fresh rows and makes room for its T tokens. With a null `state`, nothing is
  /// kept. Throws Error{bad_data} and leaves the State unchanged if a row would exceed `context`
  /// tokens.
  KvCache(const Batch& batch, State* state, std::optional<std::int64_t> context = std::nullopt);

  /// Appends and returns the slots in use.
  torch::Tensor extend(const std::string& name, const torch::Tensor& fresh) override;

  /// Drops the oldest tokens so that at most `keep` remain in each row.
  static void forget(State& state, std::int64_t keep);

  bool keeps() const override { return state_ != nullptr; }
  std::int64_t slots() const { return length_ + steps_; }  ///< S
  bool all_valid() const { return all_valid_; }            ///< no padding in any slot of any row
  /// Returns the number of real tokens in the row before each of the batch's tokens since the last
  /// reset: (B, T) int64 on the CPU, or (1, T) if all rows agree.
  const torch::Tensor& before() const { return before_; }
  const torch::Tensor& valid() const { return valid_; }        ///< (B, S) bool on the CPU
  const torch::Tensor& position() const { return position_; }  ///< (B, S): `before` of each slot
  const torch::Tensor& real() const { return real_; }  ///< (B, T) bool on the CPU: not padding

 private:
  void open();

  State* state_;
  std::int64_t steps_;
  std::int64_t begin_ = 0, length_ = 0;  // slots of earlier calls: position and number
  std::int64_t capacity_ = 0;            // of the buffers after this call
  bool relocate_ = false;                // the buffers get a new layout
  bool all_valid_ = true;
  torch::Tensor before_, valid_, position_, real_;
};

}  // namespace nn
