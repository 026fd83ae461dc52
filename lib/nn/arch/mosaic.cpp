#include "nn/arch/mosaic.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/error.h"
#include "nn/base/upload.h"
#include "nn/layers/attention.h"
#include "nn/layers/embedding.h"
#include "nn/layers/option_checks.h"

namespace nn {
namespace {

using torch::Tensor;

/// The batch of the pairs' slots: `real` (B, n) bool says which are pairs.
Batch slots_of(const Batch& batch, const Tensor& real) {
  Batch slots;
  slots.inputs = torch::zeros(real.sizes(), torch::kInt64);
  slots.place.run = torch::zeros(real.sizes(), torch::kInt64).masked_fill_(real.logical_not(), -1);
  slots.place.segment = slots.place.position = slots.inputs;
  slots.fresh = batch.fresh;
  return slots;
}

Tensor started_rows(const Batch& batch, State* state) {
  if (state == nullptr || !state->has("started")) return torch::zeros({batch.rows()}, torch::kBool);
  const auto started = state->tensors["started"].cpu();
  if (started.size(0) != batch.rows())
    core::fail(core::Code::bug, "a State of {} rows cannot go on with a batch of {} rows",
               started.size(0), batch.rows());
  return batch.fresh.defined() ? started & batch.fresh.logical_not() : started;
}

}  // namespace

Mosaic::Mosaic(const ModelOptions& options, std::int64_t vocabulary)
    : shape_(options.shape), options_(options.mosaic) {
  check_heads(shape_);
  const auto slots = options_.persistent_slots > 0
                         ? options_.persistent_slots
                         : std::max<std::int64_t>(1, 7 * shape_.d_model / 2);
  wte_ = register_module("wte", make_embedding(options, vocabulary));
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
  const auto real = batch.place.run >= 0;  // (B, T)
  const auto started = started_rows(batch, state);
  const bool dense = real.all().item<bool>();
  const auto steps = batch.steps();
  const auto device = batch.inputs.device();
  MosaicCall call;
  call.state = state;
  call.bound = bound_;
  call.watch = watcher();
  call.opening = dense && steps > 0 && !started.any().item<bool>() && bound_.slots == 0;
  const auto lengths = real.sum(1);  // (B)
  auto ids = batch.inputs;
  Tensor order;
  auto pairs = torch::ones({batch.rows(), std::max<std::int64_t>(steps - 1, 0)}, torch::kBool);
  if (!call.opening) {
    pairs = torch::arange(steps).unsqueeze(0) < lengths.unsqueeze(1);
    if (steps > 0) pairs.select(1, 0).logical_and_(started);
  }
  if (!dense) {
    order =
        upload(torch::argsort(real.logical_not().to(torch::kUInt8), /*stable=*/true, 1), device);
    ids = ids.masked_fill(upload(real.logical_not(), device), 0).gather(1, order);
    call.last = upload((lengths - 1).clamp_min(0), device);
    call.none = upload(lengths.eq(0).unsqueeze(1), device);
  }
  std::optional<KvCache> cache;
  if (bound_.slots > 0) {
    call.pairs = pairs.contiguous();
    if (state != nullptr) state->reset(batch.fresh);
  } else {
    cache.emplace(slots_of(batch, pairs), state);  // resets fresh rows
    call.cache = &*cache;
    const auto floats = wte_->parameters()[0].options().requires_grad(false);
    const auto sight = make_sight(*cache, Positions::none, shape_.heads, 0, floats);
    call.mask = sight.mask;
    call.causal = sight.causal && steps > 1;
    if (!call.opening && !pairs.all().item<bool>()) call.sees = upload(pairs.unsqueeze(2), device);
  }
  if (state != nullptr) state->tensors["started"] = started | real.any(1);

  auto hidden = run(ids, call);
  if (order.defined()) {
    const auto back = torch::argsort(order, /*stable=*/true, 1).unsqueeze(2);
    hidden.f = hidden.f.gather(1, back.expand_as(hidden.f));
    hidden.g = hidden.g.gather(1, back.expand_as(hidden.g));
  }
  return hidden;
}

Hidden Mosaic::run(const Tensor& ids, const MosaicCall& call) {
  const auto drop = [&](const Tensor& x) { return dropped(x, shape_.dropout, is_training()); };
  auto x = wte_->forward(ids);  // without dropout, as the authors have it
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

}  // namespace nn
