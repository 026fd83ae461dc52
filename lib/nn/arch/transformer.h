#pragma once
// Decoder-only transformer, with shapes from GPT-2's to fairseq's.
// Common base of the transformer and of the decoder of an encoder-decoder.
// Encoder-decoder transformer (Vaswani et al. 2017, with fairseq's shapes): an encoder reads a
// source and a decoder generates the target.
// Encoder of an encoder-decoder, with attention in both directions.

#include "nn/layers/block_stack.h"

namespace nn {

/// Embeds tokens and runs a BlockStack. Submodules: wte, and those of the BlockStack. A token's
/// position is the number of real tokens before it in its row since the last reset. The memory key
/// is the input of the last feed-forward network (after its norm), or the output: --memory-key.
class DecoderStack : public Architecture, public RingDecoder, public RecomputingBlocks {
 public:
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);
  std::int64_t d_model() const override { return stack_.shape().d_model; }
  std::int64_t d_key() const override { return stack_.shape().d_model; }
  Carry carry() const override { return stack_.absolute() ? Carry::reencode : Carry::forget; }
  std::optional<std::int64_t> context() const override { return stack_.context(); }
  void forget(State& state, std::int64_t keep) override { KvCache::forget(state, keep); }
  std::shared_ptr<Embedding> embedding() override { return wte_; }
  const BlockStack& stack() const { return stack_; }
  void recompute_blocks(bool on) override { stack_.recompute(on); }
  bool in_rings() const override { return stack_.plain(); }
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;

 protected:
  /// Registers wte and the positions. Throws Error{bad_config} that names the option.
  DecoderStack(const ModelOptions& options, std::int64_t vocabulary);
  /// Registers the blocks; call it once, after modules that precede the blocks.
  void register_blocks(bool read_sources) { stack_.register_blocks(*this, read_sources); }
  /// Runs the batch's tokens through embedding and stack. `sources` is empty or has one element for
  /// each block. `state`, the cache's or null, holds the past of layers with n-grams.
  Hidden decode(const Batch& batch, KvCache& cache, const std::vector<SourceView>& sources,
      const AttentionCallback* watch, State* state = nullptr);
  Hidden decode(const torch::Tensor& ids, KvRing& ring, const std::vector<SourceView>& sources);

  std::shared_ptr<Embedding> wte_;
  BlockStack stack_;

 private:
  torch::Tensor embedded(const torch::Tensor& ids, const torch::Tensor& before);
  Hidden through_blocks(const torch::Tensor& x, const std::vector<Visibility>& visibilities,
      KeyValues& cache, const std::vector<SourceView>& sources, NgramCall* ngrams);
};

class Transformer : public DecoderStack, public WatchedAttention, public LendingBlocks {
 public:
  /// Throws Error{bad_config} that names the option.
  Transformer(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} if learned positions run out.
  Hidden forward(const Batch& batch, State* state) override;
  std::vector<std::vector<torch::Tensor>> block_weights() const override {
    return stack_.block_weights();
  }
  void lend_weights(std::shared_ptr<WeightLender> lender) override {
    stack_.lend_weights(std::move(lender));
  }
};

/// Blocks of a transformer without the causal mask. Submodules are those of the BlockStack; the
/// embedding is the decoder's. ALiBi uses the absolute distance.
class SourceEncoder : public torch::nn::Module {
 public:
  explicit SourceEncoder(const ModelOptions& options);
  /// Encodes source (B, S) int64, -1 is padding at any position, without effect on other positions;
  /// real (B, S) bool on the CPU marks tokens -> (B, S, d). Throws Error{bad_data} if learned
  /// positions run out.
  torch::Tensor forward(const torch::Tensor& source, const torch::Tensor& real, Embedding& words);
  /// See RecomputingBlocks.
  void recompute_blocks(bool on) { stack_.recompute(on); }

 private:
  Visibility make_visibility(const KvCache& cache, const torch::TensorOptions& options) const;

  BlockStack stack_;
};

/// Returns the mask that hides positions that are not `real` (B, S), bool on the CPU, from every
/// query; no mask if all are real.
Visibility visibility_of_real(const torch::Tensor& real, const torch::TensorOptions& options);

/// A decoder with cross-attention, and an encoder with an equal number of layers; wte has the
/// tokens of both sides. Reads batch.source for all rows or, with a State, for the fresh ones. The
/// State holds "source" (B, S) bool on the CPU, true at tokens, and "h.N.cross.k" and "h.N.cross.v"
/// (B, heads, S, width) for each layer. Rows without a source skip cross-attention.
class EncoderDecoder : public DecoderStack {
 public:
  /// Throws Error{bad_config} that names the option.
  EncoderDecoder(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} if learned positions run out on either side.
  Hidden forward(const Batch& batch, State* state) override;
  /// Decodes with the state of forward(), except that "source" is on the device.
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  void read_sources(const torch::Tensor& source, const torch::Tensor& fresh, State& kept) override;
  void recompute_blocks(bool on) override {
    DecoderStack::recompute_blocks(on);
    encoder_->recompute_blocks(on);
  }
  /// Returns each layer's keys and values of the sources (B, S) int64; -1 is padding.
  std::vector<SourceEntries> source_entries(const torch::Tensor& source);

 private:
  std::vector<SourceEntries> entries_of(const torch::Tensor& source, const torch::Tensor& real);
  void read_source(const Batch& batch, State& sources);
  /// Calls decode() with each block's view of the sources in a State.
  template <class Decode> Hidden with_sources(const State& sources, const Decode& decode) const;

  std::shared_ptr<SourceEncoder> encoder_;
};

}  // namespace nn
