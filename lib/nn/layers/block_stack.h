#pragma once
// Common part of transformers, encoders and decoders: positions, blocks, a final norm.
// The layers whose feed-forward networks memories with product keys replace, by the options.
// Mixture of experts: a router chooses a few feed-forward networks for each token (Shazeer et al.
// 2017, "Outrageously Large Neural Networks"). There is no noise, as in Mixtral (Jiang et al.
// 2024), OLMoE (Muennighoff et al. 2024) and Qwen 3.
//
//   p = softmax(W_router x), over all experts
//   C = the k experts with the largest p
//   w_e = p_e / sum over C of p, which is the softmax over C alone;  not normalised: w_e = p_e
//   y = sum over e of C of w_e expert_e(x)
//
// Each expert is a FeedForward. The gradient reaches the router through w, and the chosen experts;
// the gradients of the others are zero. There is no load-balancing loss.
// A large table of values, of which a hidden vector reads a few rows: the memory layer of Lample et
// al. 2019, "Large Memory Layers with Product Keys", with the gate of Berges et al. 2024, "Memory
// Layers at Scale" (Memory+).
//
// With n half keys there are n^2 values. Value i n + j has the key (K1_i, K2_j). For each head h:
//
//  q = RMSNorm(x W_h), cut into halves q1, q2
//  I = the k best i by K1_i . q1,  J = the k best j by K2_j . q2
//  P = the k best pairs of I x J by K1_i . q1 + K2_j . q2, which are the k best of all n^2
//  w = softmax over P of these scores
//
//  y = sum over heads, over P of w_p values_p
//  gated: (y * silu(x W_gate)) W_out;  else y
//
// Each head has its own keys. All heads share the values; layers with a common pool share them too.

#include "nn/base/recomputing.h"
#include "nn/layers/block.h"
#include "nn/layers/ngram_memory.h"

namespace nn {

struct ProductKeyShape {
  std::int64_t d;  ///< width of inputs and outputs
  std::int64_t heads;
  std::int64_t keys;   ///< n, the number of half keys per half
  std::int64_t top_k;  ///< values that a head reads, at most n
  std::int64_t d_key;  ///< width of a whole key, even
  bool gated;
};

/// The table of values (n^2, d), initialised from normal(0, d^-0.5).
class ValuePool : public torch::nn::Module, public OwnFirstValues {
 public:
  explicit ValuePool(const ProductKeyShape& shape);
  void first_values() override;
  torch::Tensor values;
};

class ProductKeyMemory : public TokenNetwork, public OwnFirstValues {
 public:
  /// `pool` is registered as a module elsewhere. If it is null, the layer registers its own,
  /// "pool".
  explicit ProductKeyMemory(
      const ProductKeyShape& shape, std::shared_ptr<ValuePool> pool = nullptr);
  /// Maps x (..., d) to the same shape.
  torch::Tensor forward(const torch::Tensor& x) const override;
  /// Draws keys uniformly from +-(width of half a key)^-0.5.
  void first_values() override;

 private:
  ProductKeyShape shape_;
  std::shared_ptr<ValuePool> pool_;
  torch::Tensor keys_;  // (heads, 2, n, d_key / 2)
  std::shared_ptr<Linear> c_q_, c_gate_, c_proj_;
  std::shared_ptr<LayerNorm> norm_q_;
};

/// Positions, blocks and final norm, registered in the owning module under GPT-2's names: wpe
/// (learned positions), memory_pool (values shared by memory layers), h.N with h.N.ngram, ln_f
/// (pre-norm with final_norm). Initial values are drawn in the order of registration; an
/// architecture may register its own modules in between.
class BlockStack {
 public:
  /// Throws Error{bad_config} that names the option.
  explicit BlockStack(const ModelOptions& options);
  void register_positions(torch::nn::Module& owner);
  void register_blocks(torch::nn::Module& owner, bool read_sources);

  /// Adds learned or sinusoidal positions to x (B, T, d), given the number `before` (B or 1, T) of
  /// earlier tokens in the row.
  torch::Tensor add_positions(const torch::Tensor& x, const torch::Tensor& before) const;
  /// Runs x (B, T, d) through all blocks and the final norm. `sources` is empty or has one element
  /// for each block. `ffn_input`, if not null, receives the input of the last feed-forward network
  /// (B, T, d). Block i uses element i modulo the size of `visibilities`. `ngrams`: the tokens;
  /// null unless has_ngrams().
  torch::Tensor forward(torch::Tensor x, const std::vector<Visibility>& visibilities,
      KeyValues& cache, const std::vector<SourceView>& sources, torch::Tensor* ffn_input,
      NgramCall* ngrams = nullptr) const;
  /// Returns the visibility of a causal call, in the queries' type and device; see make_visibility.
  std::vector<Visibility> visibilities(
      const KvCache& cache, const torch::TensorOptions& options) const;
  /// Returns the visibility of a call with keys in a ring.
  std::vector<Visibility> visibilities(
      const KvRing& ring, const torch::TensorOptions& options) const;
  /// Returns the rotation of these tokens in layers with that window (0: none); nullopt without
  /// rotary embeddings.
  std::optional<Rotation> rotation(
      const torch::Tensor& before, std::int64_t window, const torch::TensorOptions& options) const;

  /// Returns the name of block i's state in a State.
  static std::string name(std::size_t i) { return "h." + std::to_string(i); }

  const ShapeOptions& shape() const { return shape_; }
  Positions positions() const { return positions_; }
  /// Returns the maximum number of tokens in a row (learned positions); nullopt: unlimited.
  std::optional<std::int64_t> context() const;
  /// Returns whether a token's vector depends on the number of tokens before it.
  bool absolute() const {
    return positions_ == Positions::learned || positions_ == Positions::sinusoidal;
  }
  const std::vector<std::shared_ptr<Block>>& blocks() const { return blocks_; }
  /// Returns (context, d) for learned positions; else undefined.
  torch::Tensor position_table() const { return wpe_ ? wpe_->tables[0] : torch::Tensor(); }
  /// Returns whether each layer is attention and one feed-forward network.
  bool plain() const { return !memory_.any() && !options_.experts.any(); }
  bool has_ngrams() const { return memory_.kind == "ngram"; }
  void recompute(bool on) { recompute_ = on; }
  /// Return and lend the weights that each block alone reads; see LendingBlocks.
  std::vector<std::vector<torch::Tensor>> block_weights() const;
  void lend_weights(std::shared_ptr<WeightLender> lender) { lender_ = std::move(lender); }
  /// Returns the final norm; null: none.
  const LayerNorm* final_norm() const { return ln_f_.get(); }

 private:
  /// Returns the visibility for a KvCache or a KvRing with tokens at `before`.
  template <class Cache>
  std::vector<Visibility> visibilities_of(
      const Cache& cache, const torch::Tensor& before, const torch::TensorOptions& options) const;

  /// Returns trained weights that block i alone reads: without shared values and its n-gram memory.
  std::vector<torch::Tensor> weights_of(std::size_t i) const;
  /// Returns block i's output. Only the block's inputs are kept for the backward pass.
  torch::Tensor recomputed_block(std::size_t i, const torch::Tensor& x,
      const Visibility& visibility, KeyValues& cache, const SourceView& source) const;

  ShapeOptions shape_;
  TransformerOptions options_;
  MemoryLayerOptions memory_;
  Positions positions_;
  std::shared_ptr<Embedding> wpe_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<NgramMemory>> ngrams_;  // one per block (null: none), or empty
  std::shared_ptr<ValuePool> pool_;                   // shared by blocks; null: none
  std::shared_ptr<LayerNorm> ln_f_;
  bool recompute_ = false;
  std::shared_ptr<WeightLender> lender_;  // null: all weights are present
};

class MemoryNetworks {
 public:
  /// Registers the shared values in `owner` as "memory_pool", if memory layers share them.
  MemoryNetworks(
      const MemoryLayerOptions& options, const ShapeOptions& shape, torch::nn::Module& owner);
  /// Makes the memory of layer i (from 0), "memory"; without a network where layer i keeps its own.
  BlockNetwork of(std::int64_t i) const;
  /// Registers in `block`, layer i, its memory; else `usual` as "mlp".
  std::shared_ptr<TokenNetwork> add(
      std::int64_t i, torch::nn::Module& block, std::shared_ptr<TokenNetwork> usual) const;
  /// Returns the values that memory layers share; null: none.
  const std::shared_ptr<ValuePool>& pool() const { return pool_; }

 private:
  MemoryLayerOptions options_;
  std::int64_t layers_;
  ProductKeyShape shape_;
  std::shared_ptr<ValuePool> pool_;
};

struct ExpertShape {
  std::int64_t d;          ///< of the vectors read and given
  std::int64_t width;      ///< inside an expert
  std::int64_t count;      ///< experts
  std::int64_t per_token;  ///< k, at most count
  bool normalised;
  bool bias;  ///< of the experts' matrices; the router has none
};

/// Parameters: router.weight (count, d), and the stacked matrices of all experts, the first expert
/// first: c_fc.weight (count * wide, d), c_proj.weight (count * d, width), with biases of equal
/// lengths.
class Experts : public TokenNetwork, public OwnFirstValues {
 public:
  Experts(const ExpertShape& shape, const Inner& inner);
  torch::Tensor forward(const torch::Tensor& x) const override;
  /// Draws matrices from normal(0, columns^-0.5).
  void first_values() override;

 private:
  ExpertShape shape_;
  Inner inner_;
  std::shared_ptr<Linear> router_, c_fc_, c_proj_;
};

}  // namespace nn
