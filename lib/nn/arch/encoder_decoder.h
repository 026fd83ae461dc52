#pragma once
// An encoder that reads a source and a decoder that writes the target: Vaswani et al. 2017, in
// fairseq's shapes.

#include <memory>
#include <vector>

#include "nn/arch/decoder_stack.h"
#include "nn/arch/source_encoder.h"

namespace nn {

/// A decoder whose blocks read sources, and encoder, of as many layers; wte has the words of both
/// sides. batch.source is read for all rows, or, with a State, for the fresh ones; the State keeps
/// "source" (B, S) bool on the CPU, true where there is a token, and of each layer "h.N.cross.k"
/// and "h.N.cross.v" (B, heads, S, width). A row that never had a source goes on without
/// cross-attention.
class EncoderDecoder : public DecoderStack {
 public:
  /// Throws Error{bad_config} naming the option.
  EncoderDecoder(const ModelOptions& options, std::int64_t vocabulary);

  /// Throws Error{bad_data} where learned positions run out on either side.
  Hidden forward(const Batch& batch, State* state) override;
  /// As forward() keeps it, "source" where the rest is.
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  void read_sources(const torch::Tensor& source, const torch::Tensor& fresh, State& kept) override;
  void recompute_blocks(bool on) override {
    DecoderStack::recompute_blocks(on);
    encoder_->recompute_blocks(on);
  }
  /// Of each layer, what cross-attention reads of the sources (B, S) int64, -1 is padding.
  std::vector<SourceEntries> source_entries(const torch::Tensor& source);

 private:
  std::vector<SourceEntries> entries_of(const torch::Tensor& source, const torch::Tensor& real);
  void read_source(const Batch& batch, State& sources);
  /// decode(what each block sees of the sources that a State keeps).
  template <class Decode>
  Hidden with_sources(const State& sources, const Decode& decode) const;

  std::shared_ptr<SourceEncoder> encoder_;
};

}  // namespace nn
