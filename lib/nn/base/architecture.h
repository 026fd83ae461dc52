#pragma once
// Interface of all architectures: Batch and State in, Hidden out.
// Computes log-probabilities from hidden vectors, one block of rows at a time.
// Facts about an architecture that the programs need before they construct it.
// Computes from a model's options how much state it carries from call to call.

#include "nn/base/batch.h"
#include "nn/base/model_options.h"

namespace nn {

/// Number of elements carried for one stream: `fixed` for recurrent state and full layer memories,
/// `per_token` for keys and values of each past token. Layer memories count as the layers' inputs,
/// as in the papers (Rae and Razavi 2020, section 1); evaluation may store keys and values instead.
struct CarriedState {
  std::int64_t fixed = 0, per_token = 0;
  std::int64_t most_tokens = 0;  ///< learned positions: maximum length of a stream; 0: no limit

  /// Returns the bytes after `tokens` tokens, with `number_bytes` for each element.
  std::int64_t bytes(std::int64_t tokens, std::int64_t number_bytes = 4) const {
    return number_bytes * (fixed + per_token * tokens);
  }
};

/// Returns the carried state; for an encoder-decoder, that of the decoder without the source's keys
/// and values. Throws Error{bad_config} as the architecture's constructor.
CarriedState carried_state(const ModelOptions& options);

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
  /// Format: see layer_memory.h. Empty: unset.
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

/// Log-probabilities of a block of rows and the data for their backward pass. Builds no autograd
/// graph.
class HeadBlock {
 public:
  virtual ~HeadBlock() = default;
  torch::Tensor log_prob;  ///< (R): log p_head(target), nats
  torch::Tensor log_z;     ///< (R): log-sum-exp of the first level's scores
  /// Returns dL/df (R, d), given dL/d log_prob and dL/d log_z, each (R), and adds to `gradients`,
  /// which have the shapes of Head::weights(). Call it at most once for each block.
  virtual torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
      std::vector<torch::Tensor>& gradients) = 0;
};

/// Targets of rows: (R) int64 on the device of the rows, with an optional CPU copy that saves a
/// synchronisation.
struct Targets {
  torch::Tensor there, host;

  Targets(torch::Tensor there_ = {}, torch::Tensor host_ = {})  // NOLINT: a tensor is targets too
      : there(std::move(there_)), host(std::move(host_)) {}
  torch::Tensor on_host() const { return host.defined() ? host : there.cpu(); }
  Targets slice(std::int64_t begin, std::int64_t end) const {
    return {there.slice(0, begin, end), host.defined() ? host.slice(0, begin, end) : host};
  }
};

/// A softmax over the vocabulary. Beside memories, the score of token w is log p(w) + log_z (TRIME
/// joins the memories at the first level of the adaptive softmax; each cluster keeps its own
/// normaliser).
class Head : public torch::nn::Module {
 public:
  virtual std::int64_t vocabulary() const = 0;
  /// Returns whether the scores are f W^T with W = weights()[0] (V, d): one band, no projection.
  virtual bool linear() const { return false; }
  /// Returns all parameters that a block's backward reaches, including tied ones, in a fixed order.
  virtual std::vector<torch::Tensor> weights() = 0;
  /// Computes a block: f (R, d), R targets. backward() is available if `gradient`. Uses no
  /// autograd.
  virtual std::unique_ptr<HeadBlock> block(
      const torch::Tensor& f, const Targets& targets, bool gradient) = 0;
  /// Returns log p (R, V) of whole rows f (R, d), for sampling and beam search; sets log_z (R) if
  /// not null.
  virtual torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z = nullptr) = 0;
  /// Returns the bytes that one row of a block needs, so that callers can limit the block size.
  virtual std::int64_t bytes_per_row() const = 0;
};

struct ArchFacts {
  const char* name;   ///< name in --arch and in config.json
  bool reads_source;  ///< forward reads batch.source: trains on pairs; all others train on tokens
  bool product_keys;  ///< memories with product keys may replace feed-forward networks
  bool layer_memory;  ///< layers keep memories, which they learn to use if State is carried
  /// Names of the options it uses, with spaces between, among those that not all use; those of
  /// TransformerOptions::own_fields() are refused elsewhere.
  const char* options;
};

/// Returns the facts of the architecture `name`. The table has one line for each architecture;
/// arch/model.cpp holds the constructors. Throws Error{bad_config} for an unknown name.
const ArchFacts& arch_facts(const std::string& name);
/// Returns the names that --arch accepts.
std::vector<std::string> architecture_names();
/// Returns the names of the options that the architecture uses, or any mixer of a hybrid's layers,
/// among those that not all use.
std::set<std::string> used_options(const ModelOptions& options);
/// Returns the names of the options that differ from their defaults although the architecture does
/// not use them, such as mixer-window. With arch hybrid, those that no mixer of its layers uses.
std::vector<std::string> unused_options(const ModelOptions& options);

}  // namespace nn
