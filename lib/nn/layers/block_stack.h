#pragma once
// What transformers, encoders and decoders are made of: positions, blocks, a last norm.

#include <memory>
#include <optional>
#include <vector>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/layers/block.h"
#include "nn/layers/embedding.h"
#include "nn/layers/layers.h"
#include "nn/layers/ngram_memory.h"
#include "nn/layers/positions.h"

namespace nn {

/// Its parts are registered in the module that has it, under GPT-2's names: wpe (learned
/// positions), memory_pool (values that memory layers share), h.N with h.N.ngram, ln_f (pre-norm
/// with final_norm). In the order in which they are registered first values are drawn, and an
/// architecture may have parts of its own between the two.
class BlockStack {
 public:
  /// Throws Error{bad_config} naming the option.
  explicit BlockStack(const ModelOptions& options);
  void register_positions(torch::nn::Module& owner);
  void register_blocks(torch::nn::Module& owner, bool read_sources);

  /// x (B, T, d), of tokens with `before` (B or 1, T) others before them in their row, plus their
  /// learned or sinusoidal positions.
  torch::Tensor add_positions(const torch::Tensor& x, const torch::Tensor& before) const;
  /// x (B, T, d) through all blocks and the last norm. `sources`: empty, or one a block.
  /// `ffn_input`, if not null, receives what the last feed-forward network reads (B, T, d).
  /// `sights`: block i has number i modulo their count. `ngrams`: the call's tokens; null unless
  /// has_ngrams().
  torch::Tensor forward(torch::Tensor x, const std::vector<Sight>& sights, KeyValues& cache,
                        const std::vector<SourceView>& sources, torch::Tensor* ffn_input,
                        NgramCall* ngrams = nullptr) const;
  /// What the queries of a causal call see, in queries' type and device; see make_sight.
  std::vector<Sight> sights(const KvCache& cache, const torch::TensorOptions& options) const;
  /// The same of a call whose keys lie in a ring.
  std::vector<Sight> sights(const KvRing& ring, const torch::TensorOptions& options) const;
  /// Rotary positions: how these tokens turn in layers of that window (0: none); else nothing.
  std::optional<Rotation> rotation(const torch::Tensor& before, std::int64_t window,
                                   const torch::TensorOptions& options) const;

  /// The name under which a State keeps what block i remembers.
  static std::string name(std::size_t i) { return "h." + std::to_string(i); }

  const ShapeOptions& shape() const { return shape_; }
  Positions positions() const { return positions_; }
  /// Most tokens of a row (learned positions), or none.
  std::optional<std::int64_t> context() const;
  /// A token's vector depends on how many stand before it.
  bool absolute() const {
    return positions_ == Positions::learned || positions_ == Positions::sinusoidal;
  }
  const std::vector<std::shared_ptr<Block>>& blocks() const { return blocks_; }
  /// (context, d), of learned positions; else undefined.
  torch::Tensor position_table() const { return wpe_ ? wpe_->tables[0] : torch::Tensor(); }
  /// Some layers look rows up in a table.
  bool looks_up() const { return memory_.any(); }
  bool has_ngrams() const { return memory_.kind == "ngram"; }
  /// See RecomputingBlocks.
  void recompute(bool on) { recompute_ = on; }
  /// Null: none.
  const LayerNorm* final_norm() const { return ln_f_.get(); }

 private:
  /// Of a KvCache or a KvRing, whose tokens stand at `before`.
  template <class Cache>
  std::vector<Sight> sights_of(const Cache& cache, const torch::Tensor& before,
                               const torch::TensorOptions& options) const;

  /// Block i's output, of which only what it reads is kept.
  torch::Tensor recomputed_block(std::size_t i, const torch::Tensor& x, const Sight& sight,
                                 KeyValues& cache, const SourceView& source) const;

  ShapeOptions shape_;
  TransformerOptions options_;
  MemoryLayerOptions memory_;
  Positions positions_;
  std::shared_ptr<Embedding> wpe_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<NgramMemory>> ngrams_;  // one a block, null: none; or empty
  std::shared_ptr<ValuePool> pool_;                   // that blocks share; null: none
  std::shared_ptr<LayerNorm> ln_f_;
  bool recompute_ = false;
};

}  // namespace nn
