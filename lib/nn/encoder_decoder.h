#pragma once
// An encoder that reads a source and a decoder that writes the target: Vaswani et al. 2017, in
// fairseq's shapes.

#include <memory>
#include <string>
#include <vector>

#include "nn/architecture.h"
#include "nn/block.h"
#include "nn/cross_attention.h"
#include "nn/model_options.h"
#include "nn/source_encoder.h"

namespace nn {

/// pre-norm:  x += attn(ln_1(x)); x += cross(ln_x(x)); x += mlp(ln_2(x))
/// post-norm: the norms follow the sums.
class DecoderBlock : public torch::nn::Module {
 public:
  DecoderBlock(const ShapeOptions& shape, const TransformerOptions& options);
  const CrossAttention& cross() const { return *cross_; }
  /// What a block sees of the source; `entries` null: nothing.
  struct Source {
    const SourceEntries* entries = nullptr;
    const Sight* sight = nullptr;
    torch::Tensor present;
  };
  /// x (B, T, d); `ffn_input`, if not null, receives what mlp reads (B, T, d).
  torch::Tensor forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                        const std::string& name, const Source& source, torch::Tensor* ffn_input);

 private:
  bool pre_norm_;
  double dropout_;
  std::shared_ptr<LayerNorm> ln_1_, ln_x_, ln_2_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<CrossAttention> cross_;
  std::shared_ptr<FeedForward> mlp_;
};

/// Submodules: wte (the words of both sides), wpe, h.N, ln_f as the transformer's, h.N.ln_x and
/// h.N.cross, and encoder, of as many layers. batch.source is read for all rows, or, with a State,
/// for the fresh ones; the State keeps "source" (B, S) bool, true where there is a token, and of
/// each layer "h.N.cross.k" and "h.N.cross.v" (B, heads, S, width). A row that never had a source
/// goes on without cross-attention.
class EncoderDecoder : public Architecture {
 public:
  /// Throws Error{bad_config} naming the option.
  explicit EncoderDecoder(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} where learned positions run out on either side.
  Hidden forward(const Batch& batch, State* state) override;
  std::int64_t d_model() const override { return shape_.d_model; }
  std::int64_t d_key() const override { return shape_.d_model; }
  Carry carry() const override;
  std::optional<std::int64_t> context() const override;
  void forget(State& state, std::int64_t keep) override { KvCache::forget(state, keep); }
  std::shared_ptr<Embedding> embedding() override { return wte_; }
  /// Of each layer, what cross-attention reads of the sources (B, S) int64, -1 is padding.
  std::vector<SourceEntries> source_entries(const torch::Tensor& source);

 private:
  torch::Tensor embed(const Batch& batch, const KvCache& cache);
  void read_source(const Batch& batch, State& sources);

  ShapeOptions shape_;
  TransformerOptions options_;
  Positions positions_;
  std::shared_ptr<Embedding> wte_, wpe_;
  std::shared_ptr<SourceEncoder> encoder_;
  std::vector<std::shared_ptr<DecoderBlock>> blocks_;
  std::shared_ptr<LayerNorm> ln_f_;
};

}  // namespace nn
