#include "nn/arch/transformer.h"

#include "nn/base/upload.h"

namespace nn {

DecoderStack::DecoderStack(const ModelOptions& options, std::int64_t vocabulary) : stack_(options) {
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  stack_.register_positions(*this);
}

Hidden DecoderStack::decode(const Batch& batch, KvCache& cache,
    const std::vector<SourceView>& sources, const AttentionCallback* watch, State* state) {
  auto ids = batch.inputs;
  if (!cache.all_valid())
    ids = ids.masked_fill(upload(cache.real().logical_not(), ids.device()), 0);
  const auto x = embedded(ids, cache.before());
  auto visibilities = stack_.visibilities(cache, x.options().requires_grad(false));
  for (auto& visibility : visibilities) visibility.watch = watch;
  std::optional<NgramCall> ngrams;
  if (stack_.has_ngrams()) ngrams.emplace(batch, state);
  return through_blocks(x, visibilities, cache, sources, ngrams ? &*ngrams : nullptr);
}

Hidden DecoderStack::decode(const torch::Tensor& ids, KvRing& ring, State& /*kept*/) {
  return decode(ids, ring, std::vector<SourceView>{});
}

Hidden DecoderStack::decode(
    const torch::Tensor& ids, KvRing& ring, const std::vector<SourceView>& sources) {
  const auto x = embedded(ids, ring.place().position);
  return through_blocks(x, stack_.visibilities(ring, x.options()), ring, sources,
      /*ngrams=*/nullptr);
}

torch::Tensor DecoderStack::embedded(const torch::Tensor& ids, const torch::Tensor& before) {
  const auto x = stack_.add_positions(wte_->forward(ids), before);
  return dropped(x, stack_.shape().dropout, is_training());
}

Hidden DecoderStack::through_blocks(const torch::Tensor& x,
    const std::vector<Visibility>& visibilities, KeyValues& cache,
    const std::vector<SourceView>& sources, NgramCall* ngrams) {
  const ShapeOptions& shape = stack_.shape();
  torch::Tensor g;
  const auto y = stack_.forward(x, visibilities, cache, sources, &g, ngrams);
  if (shape.memory_key == "output") g = y;
  return {dropped(y, shape.head_dropout, is_training()), g};
}

CarriedState DecoderStack::carried_state(const ModelOptions& options) {
  CarriedState state;
  state.per_token =
      2 * options.shape.layers * head_shape(options.shape, options.transformer).d_key();
  for (std::int64_t layer = 0; options.memory_layer.kind == "ngram" && layer < options.shape.layers;
       ++layer)
    if (options.memory_layer.has(layer, options.shape.layers))
      state.fixed += kNgramPast * options.shape.d_model;
  if (options.transformer.positions == "learned") state.most_tokens = options.transformer.context;
  return state;
}

Transformer::Transformer(const ModelOptions& options, std::int64_t vocabulary)
    : DecoderStack(options, vocabulary) {
  register_blocks(/*read_sources=*/false);
}

Hidden Transformer::forward(const Batch& batch, State* state) {
  KvCache cache(batch, state, context());
  return decode(batch, cache, {}, watcher(), state);
}

}  // namespace nn
