#include "nn/arch/decoder_stack.h"

#include "nn/base/upload.h"

namespace nn {

DecoderStack::DecoderStack(const ModelOptions& options, std::int64_t vocabulary) : stack_(options) {
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  stack_.register_positions(*this);
}

Hidden DecoderStack::decode(const Batch& batch, KvCache& cache,
                            const std::vector<SourceView>& sources, const AttentionWatch* watch) {
  const ShapeOptions& shape = stack_.shape();
  auto ids = batch.inputs;
  if (!cache.all_valid())
    ids = ids.masked_fill(upload(cache.real().logical_not(), ids.device()), 0);
  auto x = stack_.add_positions(wte_->forward(ids), cache.before());
  x = dropped(x, shape.dropout, is_training());
  auto sights = stack_.sights(cache, x.options().requires_grad(false));
  for (auto& sight : sights) sight.watch = watch;
  torch::Tensor g;
  x = stack_.forward(x, sights, cache, sources, &g);
  if (shape.memory_key == "output") g = x;
  return {dropped(x, shape.head_dropout, is_training()), g};
}

}  // namespace nn
