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
//
// Invariants between calls: 0 <= begin <= end <= C, and no slot outside [begin, end) is read. Valid
// slots of a row have ascending positions below its "seen", which counts the row's real tokens
// since its reset, also those that forget() has dropped. Slot s of all buffers is of the same
// token.
// Keys and values of growing rows on a device. No size or operator parameter depends on the number
// of tokens, so that each call launches the same operators.
// Interface of architectures that decode on a device with fixed operators in each step.

#include "nn/base/architecture.h"
#include "nn/layers/embedding.h"

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

class RingDecoder {
 public:
  virtual ~RingDecoder() = default;
  /// Returns whether the present configuration supports decode(); otherwise only forward() decodes.
  virtual bool in_rings() const { return true; }
  /// Returns whether every token changes `kept`, so that tokens cannot be rolled back.
  virtual bool carries() const { return false; }
  /// Computes one call of ids (B, T), entirely on the ids' device. State that grows is written to
  /// the ring at its current place. Other state is written to `kept`, whose rows are zero where a
  /// text begins. Not for training.
  virtual Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) = 0;
  /// Encodes `source` (B, S) int64, where -1 is padding. Call it before the call in which the rows
  /// with `fresh` (B) bool begin; their rows of `kept` must be zero. Both tensors are on the CPU.
  virtual void read_sources(
      const torch::Tensor& /*source*/, const torch::Tensor& /*fresh*/, State& /*kept*/) {}
};

/// What architectures have whose State every token changes: an embedding, registered as wte, and
/// layers and memory keys of its width. The State has constant size unless carry() says otherwise.
class CarryingArchitecture : public Architecture, public RingDecoder {
 public:
  bool carries() const override { return true; }
  bool in_rings() const override { return one_state_; }
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override { return Carry::constant; }
  std::shared_ptr<Embedding> embedding() override { return wte_; }

 protected:
  /// Throws Error{bad_config} that names the option.
  CarryingArchitecture(const ModelOptions& options, std::int64_t vocabulary)
      : shape_(options.shape), one_state_(options.state_memory.kind == "none"),
        wte_(register_module("wte", make_embedding(options, vocabulary))) {}

  ShapeOptions shape_;
  bool one_state_;
  std::shared_ptr<Embedding> wte_;
};

}  // namespace nn
