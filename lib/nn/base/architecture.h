#pragma once
// What every architecture is: Batch and State in, Hidden out.

#include <memory>
#include <optional>
#include <string>

#include "nn/base/batch.h"
#include "nn/base/model_options.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

class Embedding;

/// What an architecture makes of a batch.
struct Hidden {
  torch::Tensor f;  ///< (B, T, d_model): feeds the head
  torch::Tensor g;  ///< (B, T, d_key): keys the memory, as query and as key
};

/// How an architecture goes on past its context.
enum class Carry {
  reencode,  ///< absolute positions: the window must be encoded again when the oldest token goes
  forget,    ///< State can forget its oldest tokens
  constant,  ///< State does not grow (recurrent)
};

/// How far the layers look back at test. What is left open stays as it was trained.
struct LayerReach {
  /// See layer_memory_lengths.h; empty: open.
  std::string layer_memory;
  /// 0: no bound; -1: open.
  std::int64_t clamp_length = -1;
  /// on, off; empty: open.
  std::string same_length;
  bool open() const { return layer_memory.empty() && clamp_length < 0 && same_length.empty(); }
};

/// How much each head of a contextual memory holds at test.
struct SlotBound {
  /// Pairs; 0: all.
  std::int64_t slots = 0;
  /// Which pair goes: the least recently attended; else the oldest.
  bool lru = false;
};

/// Public parameters and submodules are named as config.json's tensors are. forward is not thread
/// safe.
class Architecture : public torch::nn::Module {
 public:
  /// `state` null: rows start afresh and nothing is kept. Else rows marked batch.fresh are reset,
  /// the batch continues what the State holds, and the State is updated in place (with gradient;
  /// the caller detaches). Rows may hold padding (run -1) anywhere; padded places of Hidden are
  /// finite and mean nothing, and they change nothing else: a row gives the same Hidden whatever
  /// padding stands around its tokens.
  virtual Hidden forward(const Batch& batch, State* state) = 0;

  virtual std::int64_t d_model() const = 0;
  virtual std::int64_t d_key() const = 0;
  virtual Carry carry() const = 0;
  /// Most tokens one row can hold since it was fresh (learned positions), or none.
  virtual std::optional<std::int64_t> context() const { return std::nullopt; }
  /// Drops the oldest tokens so that at most `keep` remain a row. Only where carry() is forget.
  virtual void forget(State& state, std::int64_t keep) { (void)state, (void)keep; }
  /// These take effect with the next forward. Throw Error{usage} where there is no such memory,
  /// Error{bad_config} naming the option.
  virtual void set_reach(const LayerReach& reach);
  virtual void bound_slots(const SlotBound& bound);
  /// The input embedding, which a tied head shares; null for vectors.
  virtual std::shared_ptr<Embedding> embedding() = 0;
};

}  // namespace nn
