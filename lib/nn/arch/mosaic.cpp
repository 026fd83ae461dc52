#include "nn/arch/mosaic.h"

#include "nn/base/upload.h"

namespace nn {

Mosaic::Mosaic(const ModelOptions& options, std::int64_t vocabulary)
    : CarryingArchitecture(options, vocabulary), options_(options.mosaic) {
  check_heads(shape_);
  const auto slots = options_.persistent_slots > 0
                         ? options_.persistent_slots
                         : std::max<std::int64_t>(1, 7 * shape_.d_model / 2);
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape_.d_model, kNormEpsilon, /*bias=*/false);
  };
  for (const auto& layer : add_layers(*this, "h", shape_.layers)) {
    layers_.push_back(
        {layer->register_module("ln_1", norm()), layer->register_module("ln_2", norm()),
            layer->register_module("contextual", std::make_shared<ContextualUnit>(shape_)),
            layer->register_module("persistent", std::make_shared<PersistentUnit>(shape_, slots))});
  }
  ln_f_ = register_module("ln_f", norm());
}

Hidden Mosaic::forward(const Batch& batch, State* state) {
  const MosaicRows rows(batch, state, /*may_open=*/bound_.slots == 0);
  auto call = rows.call(state);
  call.bound = bound_;
  call.watch = watcher();
  std::optional<KvCache> cache;
  if (bound_.slots > 0) {
    call.pairs = rows.pairs().contiguous();
    if (state != nullptr) state->reset(batch.fresh);
  } else {
    cache.emplace(rows.slots(), state);  // this resets fresh rows
    call.cache = &*cache;
    const auto floats = wte_->parameters()[0].options().requires_grad(false);
    const auto visibility = make_visibility(*cache, Positions::none, shape_.heads, 0, floats);
    call.mask = visibility.mask;
    call.causal = visibility.causal && batch.steps() > 1;
    if (!rows.opening() && !rows.pairs().all().item<bool>())
      call.sees = upload(rows.pairs().unsqueeze(2), batch.inputs.device());
  }
  if (state != nullptr) rows.mark_started(*state);
  return rows.in_order(run(rows.ids(), call));
}

Hidden Mosaic::decode(const Tensor& ids, KvRing& ring, State& kept) {
  auto call = call_in_ring(ring, kept);
  const auto floats = wte_->parameters()[0].options().requires_grad(false);
  call.mask = make_visibility(ring, Positions::none, shape_.heads, 0, floats).mask;
  call.sees = sees_pairs(ring);
  return run(ids, call);
}

Hidden Mosaic::run(const Tensor& ids, const MosaicCall& call) {
  const auto drop = [&](const Tensor& x) { return dropped(x, shape_.dropout, is_training()); };
  auto x = wte_->forward(ids);  // no dropout, as in the authors' code
  Tensor g;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto name = "h." + std::to_string(i);
    x = x + drop(layer.contextual->forward(layer.ln_1->forward(x), call, name + ".contextual"));
    g = layer.ln_2->forward(x);
    x = x + drop(layer.persistent->forward(g, call, name + ".persistent"));
  }
  x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  if (options_.scale_output) x = x * (1 / std::sqrt(static_cast<double>(shape_.d_model)));
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

std::vector<Mosaic::Decay> Mosaic::decays() const {
  const torch::NoGradGuard no_gradient;
  std::vector<Decay> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    all.push_back({layer, "contextual", layers_[i].contextual->decay()});
    all.push_back({layer, "persistent", layers_[i].persistent->decay()});
  }
  return all;
}

void Mosaic::forget(State& state, std::int64_t keep) {
  KvCache::forget(state, std::max<std::int64_t>(keep - 1, 0));
}

// Each layer has the keys and values of its contextual memory, its leaky sums and its pending
// value.
CarriedState Mosaic::carried_state(const ModelOptions& options) {
  const std::int64_t d = options.shape.d_model, layers = options.shape.layers;
  return {layers * 3 * d, layers * 2 * d};
}

}  // namespace nn
