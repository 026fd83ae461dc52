#include "nn/arch/mosaic_units.h"

#include "nn/base/upload.h"
#include "nn/ops/bounded_slots.h"
#include "nn/ops/gathered_sum.h"
#include "nn/ops/leaky.h"

namespace nn {
namespace {

constexpr double kFaster = 10;       // scalars are stored divided by this factor, to train faster
constexpr double kMostLogScale = 5;  // limit of the keys' log scale
constexpr Scores kUnscaled{1, 0};

Tensor decay_of(const Tensor& stored) { return (-(stored * kFaster).abs()).exp(); }
Tensor key_scale_of(const Tensor& stored) {
  return (stored * kFaster).clamp_max(kMostLogScale).exp();
}
Tensor value_scale_of(const Tensor& stored) { return (stored * kFaster).exp(); }

UnitScalars register_scalars(torch::nn::Module& unit, std::int64_t heads) {
  return {unit.register_parameter("decay", blank({heads})),
      unit.register_parameter("key_scale", blank({heads})),
      unit.register_parameter("value_scale", blank({heads}))};
}

void fill(const UnitScalars& scalars) {
  scalars.decay.copy_(torch::linspace(.5, 5, scalars.decay.size(0)) / kFaster);
  scalars.key_scale.fill_(.1);
  scalars.value_scale.fill_(-.05);
}

/// Returns x (B, T, d) as a view (B, heads, T, d / heads).
Tensor by_head(const Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor started_rows(const Batch& batch, State* state) {
  if (state == nullptr || !state->has("started")) return torch::zeros({batch.rows()}, torch::kBool);
  const auto started = state->tensors["started"].cpu();
  if (started.size(0) != batch.rows())
    core::bug("a state of {} rows cannot continue with a batch of {} rows", started.size(0),
        batch.rows());
  return batch.fresh.defined() ? started & batch.fresh.logical_not() : started;
}

}  // namespace

UnitScalars used_scalars(const UnitScalars& stored) {
  return {
      decay_of(stored.decay), key_scale_of(stored.key_scale), value_scale_of(stored.value_scale)};
}

Tensor MosaicCall::carried(const std::string& name, const Tensor& x) const {
  if (state != nullptr && state->has(name)) return state->tensors[name];
  return torch::zeros({x.size(0), x.size(2)}, x.options().requires_grad(false));
}

void MosaicCall::carry(const std::string& name, const Tensor& x, const Tensor& before) const {
  if (state == nullptr) return;
  auto& kept = state->tensors[name];
  if (!last.defined()) {
    kept = x.select(1, x.size(1) - 1).contiguous();
    return;
  }
  const auto at = last.view({-1, 1, 1}).expand({x.size(0), 1, x.size(2)});
  kept = torch::where(none, before, x.gather(1, at).squeeze(1));
}

ContextualUnit::ContextualUnit(const ShapeOptions& shape)
    : heads_(shape.heads), dropout_(shape.attention_dropout) {
  const auto d = shape.d_model;
  maps_ = register_module("maps", std::make_shared<Linear>(d, 2 * d, /*bias=*/false));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d, d, /*bias=*/false));
  scalars_ = register_scalars(*this, heads_);
  mix_ = register_parameter("mix", blank({heads_}));
}

Tensor ContextualUnit::decay() const { return decay_of(scalars_.decay); }

void ContextualUnit::first_values() {
  fill(scalars_);
  mix_.uniform_(0, 1);
}

Tensor ContextualUnit::forward(const Tensor& x, const MosaicCall& call, const std::string& name) {
  const auto d = x.size(2), steps = x.size(1);
  const auto mapped = maps_->forward(x);
  const auto u = mapped.narrow(2, d, d);
  const auto decay = decay_of(scalars_.decay), key_scale = key_scale_of(scalars_.key_scale);
  const auto value_scale = value_scale_of(scalars_.value_scale);
  const bool keeps = call.state != nullptr;
  if (call.opening) {
    const auto made = leaky_keys(mapped.narrow(2, 0, d), decay, key_scale, {}, keeps);
    call.carry(name + ".sums", made.sums, {});
    call.carry(name + ".value", u, {});
    return c_proj_->forward(read(made.keys, made.keys.narrow(1, 0, steps - 1),
        mixed_values(u, mix_, value_scale), call, name));
  }
  const auto sums = call.carried(name + ".sums", x), value = call.carried(name + ".value", x);
  const auto made = leaky_keys(mapped.narrow(2, 0, d), decay, key_scale, sums, keeps);
  const auto pair_keys =
      torch::cat({normalised(sums, key_scale).unsqueeze(1), made.keys.narrow(1, 0, steps - 1)}, 1);
  const auto values = mixed_values(torch::cat({value.unsqueeze(1), u}, 1), mix_, value_scale);
  call.carry(name + ".sums", made.sums, sums);
  call.carry(name + ".value", u, value);
  return c_proj_->forward(read(made.keys, pair_keys, values, call, name));
}

Tensor ContextualUnit::read(const Tensor& keys, const Tensor& pair_keys, const Tensor& values,
    const MosaicCall& call, const std::string& name) {
  const auto rows = keys.size(0), steps = keys.size(1), d = keys.size(2);
  const auto first = [&] {
    return torch::zeros({rows, 1, d}, keys.options().requires_grad(false));
  };
  if (call.bound.slots > 0) return read_bounded(keys, pair_keys, values, call, name);
  if (call.opening && steps == 1) return first();  // no pair is complete yet
  const auto k = call.cache->extend(name + ".k", by_head(pair_keys, heads_));
  const auto v = call.cache->extend(name + ".v", by_head(values, heads_));
  const auto dropout = is_training() ? dropout_ : 0.0;
  if (call.watch != nullptr) {
    const auto asking = by_head(keys, heads_);
    const auto last = asking.narrow(2, asking.size(2) - 1, 1);
    (*call.watch)(last_weights(last.matmul(k.transpose(-2, -1)), call.mask));
  }
  Visibility visibility;
  visibility.mask = call.mask;
  visibility.causal = call.causal;
  if (!call.opening) {
    const auto y = attend(by_head(keys, heads_), k, v, visibility, dropout, kUnscaled);
    const auto merged = y.transpose(1, 2).reshape({rows, steps, d});
    return call.sees.defined() ? merged * call.sees.to(merged.scalar_type()) : merged;
  }
  const auto queries = by_head(keys.narrow(1, 1, steps - 1), heads_);
  const auto y = attend(queries, k, v, visibility, dropout, kUnscaled);
  return torch::cat({first(), y.transpose(1, 2).reshape({rows, steps - 1, d})}, 1);
}

Tensor ContextualUnit::read_bounded(const Tensor& keys, const Tensor& pair_keys,
    const Tensor& values, const MosaicCall& call, const std::string& name) {
  HeldSlots held;
  if (call.state != nullptr && call.state->has(name + ".marks")) {
    auto& tensors = call.state->tensors;
    held = {tensors[name + ".k"], tensors[name + ".v"], tensors[name + ".marks"]};
  }
  const auto y = read_bounded_slots(
      keys, pair_keys, values, call.pairs, heads_, call.bound.slots, call.bound.lru, held);
  if (call.state != nullptr) {
    call.state->tensors[name + ".k"] = held.keys;
    call.state->tensors[name + ".v"] = held.values;
    call.state->tensors[name + ".marks"] = held.marks;
  }
  return y;
}

PersistentUnit::PersistentUnit(const ShapeOptions& shape, std::int64_t slots)
    : heads_(shape.heads), dropout_(shape.attention_dropout) {
  const auto d = shape.d_model;
  map_ = register_module("map", std::make_shared<Linear>(d, d, /*bias=*/false));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d, d, /*bias=*/false));
  scalars_ = register_scalars(*this, heads_);
  memory_keys_ = register_parameter("memory_keys", blank({heads_, slots, d / heads_}));
  memory_values_ = register_parameter("memory_values", blank({heads_, slots, d / heads_}));
}

Tensor PersistentUnit::decay() const { return decay_of(scalars_.decay); }

void PersistentUnit::first_values() {
  fill(scalars_);
  const auto spread = 1 / std::sqrt(static_cast<double>(memory_keys_.size(2)));
  memory_keys_.normal_(0, spread);
  memory_values_.normal_(0, spread);
}

Tensor PersistentUnit::forward(const Tensor& x, const MosaicCall& call, const std::string& name) {
  const auto rows = x.size(0), steps = x.size(1), d = x.size(2);
  Tensor before;
  if (!call.opening) before = call.carried(name + ".sums", x);
  const auto made = leaky_keys(map_->forward(x), decay_of(scalars_.decay),
      key_scale_of(scalars_.key_scale).square(), before, call.state != nullptr);
  call.carry(name + ".sums", made.sums, before);
  const auto dropout = is_training() ? dropout_ : 0.0;
  // All rows share the slots: treat them as one row of queries.
  const auto queries = by_head(made.keys.view({1, rows * steps, d}), heads_);
  const auto y = attend(queries, memory_keys_.unsqueeze(0), memory_values_.unsqueeze(0), {},
      dropout, kUnscaled);                                               // (1, heads, B T, width)
  const auto scale = value_scale_of(scalars_.value_scale).unsqueeze(1);  // (heads, 1)
  return c_proj_->forward((y.transpose(1, 2) * scale).reshape({rows, steps, d}));
}

MosaicRows::MosaicRows(const Batch& batch, State* state, bool may_open)
    : fresh_(batch.fresh), ids_(batch.inputs) {
  const auto real = batch.place.run >= 0;  // (B, T)
  const auto started = started_rows(batch, state);
  const bool dense = real.all().item<bool>();
  const auto steps = batch.steps();
  const auto device = batch.inputs.device();
  started_after_ = started | real.any(1);
  opening_ = may_open && dense && steps > 0 && !started.any().item<bool>();
  const auto lengths = real.sum(1);  // (B)
  RowReads::of_tokens(torch::arange(steps) < lengths.unsqueeze(1));
  if (opening_) {
    pairs_ = torch::ones({batch.rows(), steps - 1}, torch::kBool);
  } else {
    pairs_ = torch::arange(steps).unsqueeze(0) < lengths.unsqueeze(1);
    if (steps > 0) pairs_.select(1, 0).logical_and_(started);
  }
  if (dense) return;
  order_ = upload(torch::argsort(real.logical_not().to(torch::kUInt8), /*stable=*/true, 1), device);
  ids_ = ids_.masked_fill(upload(real.logical_not(), device), 0).gather(1, order_);
  last_ = upload((lengths - 1).clamp_min(0), device);
  none_ = upload(lengths.eq(0).unsqueeze(1), device);
}

Batch MosaicRows::slots() const {
  Batch slots;
  slots.inputs = torch::zeros(pairs_.sizes(), torch::kInt64);
  slots.place.run =
      torch::zeros(pairs_.sizes(), torch::kInt64).masked_fill_(pairs_.logical_not(), -1);
  slots.place.segment = slots.place.position = slots.inputs;
  slots.fresh = fresh_;
  return slots;
}

MosaicCall MosaicRows::call(State* state) const {
  MosaicCall call;
  call.state = state;
  call.opening = opening_;
  call.last = last_;
  call.none = none_;
  return call;
}

Hidden MosaicRows::in_order(const Hidden& hidden) const {
  if (!order_.defined()) return hidden;
  const auto back = torch::argsort(order_, /*stable=*/true, 1).unsqueeze(2);
  return {hidden.output.gather(1, back.expand_as(hidden.output)),
      hidden.key.gather(1, back.expand_as(hidden.key))};
}

MosaicCall call_in_ring(KvRing& ring, State& state) {
  auto place = ring.place();
  place.first = place.first + 1;  // the oldest token completes no pair that is still held
  ring.place(place);
  MosaicCall call;
  call.state = &state;
  call.cache = &ring;
  call.opening = false;
  if (place.full) return call;
  call.last = (place.count - 1).clamp_min(0).squeeze(1);
  call.none = place.count.eq(0);
  return call;
}

Tensor sees_pairs(const KvRing& ring) {
  const auto& place = ring.place();
  return (place.position >= place.first).unsqueeze(2);
}

}  // namespace nn
