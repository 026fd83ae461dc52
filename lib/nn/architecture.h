#pragma once
// What every architecture is: Batch and State in, Hidden out.

#include <memory>
#include <optional>
#include <string>

#include "nn/batch.h"
#include "nn/embedding.h"
#include "nn/model_options.h"
#include "nn/state.h"
#include "nn/torch.h"

namespace nn {

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

/// How far the layers look back on at test. What is left open stays as it was trained.
struct Reach {
  std::string layer_memory;        ///< memory_pattern.h; empty: open
  std::int64_t clamp_length = -1;  ///< 0: no bound; -1: open
  std::string same_length;         ///< on, off; empty: open
  std::int64_t context_slots = 0;  ///< pairs that each head of a mosaic holds; 0: all
  bool evict_lru = false;  ///< the one that goes was attended to longest ago; else: the oldest
  bool of_layers() const {
    return !layer_memory.empty() || clamp_length >= 0 || !same_length.empty();
  }
  bool open() const { return !of_layers() && context_slots == 0; }
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
  /// Takes effect with the next forward. Throws Error{usage} where there is no such memory,
  /// Error{bad_config} naming the option.
  virtual void set_reach(const Reach& reach);
  /// The input embedding, which a tied head shares; null for vectors.
  virtual std::shared_ptr<Embedding> embedding() = 0;
};

/// The bands of the vocabulary, and the input embedding that an architecture makes of them.
/// Both throw Error{bad_config} naming the option.
Bands make_bands(const ModelOptions& options, std::int64_t vocabulary);
std::shared_ptr<Embedding> make_embedding(const ModelOptions& options, std::int64_t vocabulary);

}  // namespace nn
