#pragma once
// Decoder-only transformer, with shapes from GPT-2's to fairseq's.
// Common base of the transformer and of the decoder of an encoder-decoder.

#include "nn/arch/carried_state.h"
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

}  // namespace nn
