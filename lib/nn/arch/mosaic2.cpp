#include "nn/arch/mosaic2.h"

#include "core/error.h"
#include "nn/arch/mosaic_rows.h"
#include "nn/layers/embedding.h"
#include "nn/layers/memory_networks.h"
#include "nn/layers/option_checks.h"

namespace nn {

using torch::Tensor;

Mosaic2::Mosaic2(const ModelOptions& options, std::int64_t vocabulary)
    : shape_(options.shape), options_(options.mosaic2) {
  check_heads(shape_);
  if (options_.most_delay < options_.delay)
    core::fail(core::Code::bad_config, "long-term-delay-most: {} is less than long-term-delay {}",
               options_.most_delay, options_.delay);
  const auto d = shape_.d_model;
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(d, kNormEpsilon, /*bias=*/false, NormKind::rms);
  };
  const MemoryNetworks memories(options.memory_layer, shape_, *this);
  const auto layers = add_layers(*this, "h", shape_.layers);
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const auto& layer = layers[static_cast<std::size_t>(i)];
    Layer made;
    made.ln_1 = layer->register_module("ln_1", norm());
    made.short_term = layer->register_module("short_term", std::make_shared<GatedMemory>(shape_));
    made.long_term = layer->register_module("long_term", std::make_shared<GatedMemory>(shape_));
    made.ln_2 = layer->register_module("ln_2", norm());
    made.mlp = memories.add(i, *layer,
                            std::make_shared<FeedForward>(shape_, Activation::silu,
                                                          /*bias=*/false, /*gated=*/true));
    layers_.push_back(made);
  }
  ln_f_ = register_module("ln_f", norm());
}

std::int64_t Mosaic2::delay() const {
  if (!is_training()) return options_.delay;
  return torch::randint(options_.delay, options_.most_delay + 1, {1}, torch::kInt64)
      .item<std::int64_t>();
}

Hidden Mosaic2::forward(const Batch& batch, State* state) {
  const MosaicRows rows(batch, state, /*may_open=*/true);
  KvCache cache(rows.slots(), state);  // this resets fresh rows
  auto call = rows.call(state);
  call.cache = &cache;
  const auto floats = wte_->parameters()[0].options().requires_grad(false);
  const auto near = make_pair_visibility(cache, {.nearest = 1, .farthest = options_.short_term},
                                         batch.steps(), call.opening, floats),
             far = make_pair_visibility(cache, {.nearest = delay(), .farthest = 0}, batch.steps(),
                                        call.opening, floats);
  if (state != nullptr) rows.mark_started(*state);
  return rows.in_order(run(rows.ids(), call, near, far));
}

Hidden Mosaic2::decode(const Tensor& ids, KvRing& ring, State& kept) {
  const auto call = call_in_ring(ring, kept);
  const auto floats = wte_->parameters()[0].options().requires_grad(false);
  const auto near = make_pair_visibility(ring, {.nearest = 1, .farthest = options_.short_term},
                                         floats),
             far = make_pair_visibility(ring, {.nearest = options_.delay, .farthest = 0}, floats);
  return run(ids, call, near, far);
}

Hidden Mosaic2::run(const Tensor& ids, const MosaicCall& call, const PairVisibility& near,
                    const PairVisibility& far) {
  const auto drop = [&](const Tensor& x) { return dropped(x, shape_.dropout, is_training()); };
  auto x = drop(wte_->forward(ids));
  Tensor g;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto name = "h." + std::to_string(i);
    const auto read = layer.ln_1->forward(x);
    x = x + drop(layer.short_term->forward(read, call, near, name + ".short_term") +
                 layer.long_term->forward(read, call, far, name + ".long_term"));
    g = layer.ln_2->forward(x);
    x = x + drop(layer.mlp->forward(g));
  }
  x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

void Mosaic2::forget(State& state, std::int64_t keep) {
  KvCache::forget(state, std::max<std::int64_t>(keep - 1, 0));
}

// Each layer has the keys and values of its contextual memory and the sums of both memories.
CarriedState Mosaic2::carried_state(const ModelOptions& options) {
  const std::int64_t d = options.shape.d_model, layers = options.shape.layers;
  return {layers * 2 * (2 * d + options.shape.heads), layers * 2 * 2 * d};
}

}  // namespace nn
