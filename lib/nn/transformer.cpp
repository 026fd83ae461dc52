#include "nn/transformer.h"

#include <string>

#include "nn/option_checks.h"

namespace nn {
Transformer::Transformer(const ModelOptions& options, std::int64_t vocabulary)
    : shape_(options.shape),
      options_(options.transformer),
      positions_(parse_positions(options.transformer.positions)) {
  check_heads(shape_);
  check_norm(options_);
  check_positions(shape_, options_);
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  if (positions_ == Positions::learned) {
    const Bands rows{options_.context, shape_.d_model, {}, 1};
    wpe_ = register_module("wpe", std::make_shared<Embedding>(rows));
  }
  const auto layers = register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i)
    blocks_.push_back(
        layers->register_module(std::to_string(i), std::make_shared<Block>(shape_, options_)));
  if (options_.final_norm && options_.norm == "pre") {
    ln_f_ = register_module(
        "ln_f", std::make_shared<LayerNorm>(shape_.d_model, options_.norm_epsilon, options_.bias));
  }
}

Hidden Transformer::forward(const Batch& batch, State* state) {
  KvCache cache(batch, state, context());
  auto x = dropped(embed(batch, cache), shape_.dropout, is_training());
  const bool drops = is_training() && shape_.attention_dropout > 0;
  auto sight = make_sight(cache, positions_, shape_.heads, shape_.d_model / shape_.heads,
                          x.options().requires_grad(false), drops);
  sight.watch = watcher();
  torch::Tensor g;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    torch::Tensor* const key = i + 1 == blocks_.size() ? &g : nullptr;
    x = blocks_[i]->forward(x, sight, cache, "h." + std::to_string(i), key);
  }
  if (ln_f_) x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

torch::Tensor Transformer::embed(const Batch& batch, const KvCache& cache) {
  auto ids = batch.inputs;
  if (!cache.all_valid()) ids = ids.masked_fill(cache.real().logical_not().to(ids.device()), 0);
  auto x = wte_->forward(ids);
  if (positions_ == Positions::learned) x = x + wpe_->forward(cache.before().to(ids.device()));
  if (positions_ == Positions::sinusoidal)
    x = x + sinusoids(cache.before(), shape_.d_model).to(x.options().requires_grad(false));
  return x;
}

Carry Transformer::carry() const {
  const bool absolute = positions_ == Positions::learned || positions_ == Positions::sinusoidal;
  return absolute ? Carry::reencode : Carry::forget;
}

std::optional<std::int64_t> Transformer::context() const {
  if (positions_ == Positions::learned) return options_.context;
  return std::nullopt;
}

void Transformer::forget(State& state, std::int64_t keep) { KvCache::forget(state, keep); }

}  // namespace nn
