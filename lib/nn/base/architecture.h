#pragma once
// Interface of all architectures: Batch and State in, Hidden out.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/base/batch.h"
#include "nn/base/model_options.h"
#include "nn/base/state.h"
#include "nn/base/torch.h"

namespace nn {

class Embedding;

/// Output of an architecture for a batch.
struct Hidden {
  torch::Tensor output;  ///< (B, T, d_model): input of the head
  torch::Tensor key;     ///< (B, T, d_key): queries and keys of the memory

  Hidden flatten() const;                                    ///< (B T, d)
  Hidden slice(std::int64_t begin, std::int64_t end) const;  ///< along the first dimension
  Hidden select(const torch::Tensor& index) const;           ///< along the first dimension
  /// Concatenates along the first dimension; undefined without pieces.
  static Hidden concatenate(const std::vector<Hidden>& pieces);
};

/// How an architecture continues beyond its context length.
enum class Carry {
  reencode,  ///< absolute positions: re-encodes the window when the oldest token leaves
  forget,    ///< State can drop its oldest tokens
  constant,  ///< State has constant size (recurrent)
};

/// How far the layers look back at test time. Unset fields keep the training value.
struct LayerReach {
  /// Format: see layer_memory_lengths.h. Empty: unset.
  std::string layer_memory;
  /// Relative distance limit in tokens. 0: no limit; -1: unset.
  std::int64_t clamp_length = -1;
  /// "on" or "off". Empty: unset.
  std::string same_length;
  bool open() const { return layer_memory.empty() && clamp_length < 0 && same_length.empty(); }
};

/// Limits the size of each head's contextual memory at test time.
struct SlotBound {
  /// Number of key-value pairs. 0: all.
  std::int64_t slots = 0;
  /// Evicts the least recently attended pair if true, otherwise the oldest.
  bool lru = false;
};

/// Base class of all architectures. Public parameters and submodules have the names of the tensors
/// in the checkpoint. forward is not thread safe.
class Architecture : public torch::nn::Module {
 public:
  /// Encodes a batch. With a null `state`, each row starts from an empty state and the call keeps
  /// nothing. Otherwise the call resets the rows marked in batch.fresh, continues the other rows
  /// from the State, and updates the State in place (with gradient; the caller detaches). Rows may
  /// contain padding (run -1) at any position. Hidden is finite and meaningless at padded
  /// positions. Padding does not change the Hidden of other positions.
  virtual Hidden forward(const Batch& batch, State* state) = 0;

  virtual std::int64_t d_model() const = 0;
  virtual std::int64_t d_key() const = 0;
  virtual Carry carry() const = 0;
  /// Maximum number of tokens in a row since its last reset (learned positions); nullopt: no limit.
  virtual std::optional<std::int64_t> context() const { return std::nullopt; }
  /// Drops the oldest tokens so that at most `keep` remain in each row. Requires carry() == forget.
  virtual void forget(State& state, std::int64_t keep) { (void)state, (void)keep; }
  /// Both calls take effect at the next forward. They throw Error{usage} if the architecture has no
  /// such memory, and Error{bad_config} with the option's name for an invalid value.
  virtual void set_reach(const LayerReach& reach);
  virtual void bound_slots(const SlotBound& bound);
  /// Returns the input embedding, which a tied head shares; null if the inputs are vectors.
  virtual std::shared_ptr<Embedding> embedding() = 0;
};

}  // namespace nn
