#include "nn/arch/mosaic2.h"

#include "nn/base/upload.h"
#include "nn/layers/block_stack.h"
#include "nn/ops/leaky.h"

namespace nn {
namespace {

/// Returns x (B, T, d) as a view (B, heads, T, d / heads).
Tensor heads_apart(const Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

torch::TensorOptions of_counts(const torch::TensorOptions& queries) {
  return queries.dtype(queries.dtype() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32);
}

/// Returns whether pairs at these distances from a query are in reach.
Tensor in_reach(const Tensor& distance, const PairReach& reach) {
  const auto visible = distance >= reach.nearest - 1;
  return reach.farthest > 0 ? visible & (distance < reach.farthest) : visible;
}

/// Builds the visibility from a visibility mask (B or 1, T, S).
PairVisibility masked(const Tensor& visible, const torch::TensorOptions& queries) {
  PairVisibility made;
  made.slots = visible.size(2);
  made.visibility.mask = torch::zeros(visible.sizes(), queries)
                             .masked_fill_(visible.logical_not(), kHidden)
                             .unsqueeze(1);
  made.counts = visible.sum(2, /*keepdim=*/true).to(of_counts(queries).dtype());
  made.sees = made.counts.clamp_max(1);
  return made;
}

/// Uses a mask that shows only the pairs in reach.
PairVisibility masked_visibility(
    const KvCache& cache, const PairReach& reach, const torch::TensorOptions& queries) {
  const auto device = queries.device();
  auto distance = upload(cache.before(), device).unsqueeze(2) -
                  upload(cache.position(), device).unsqueeze(1);  // (B or 1, T, S)
  if (cache.all_valid()) distance = distance.narrow(0, 0, 1);
  auto visible = in_reach(distance, reach);
  if (!cache.all_valid())  // a token that completes no pair sees nothing
    visible = visible & upload(cache.valid(), device).unsqueeze(1) &
              upload(cache.real(), device).unsqueeze(2);
  return masked(visible, queries);
}

}  // namespace

PairVisibility make_pair_visibility(const KvCache& cache, const PairReach& reach,
    std::int64_t tokens, bool opening, const torch::TensorOptions& queries) {
  const auto slots = cache.slots();
  PairVisibility made;
  if (opening) {  // a triangle, or a band if the oldest pairs are out of reach
    made.skipped = std::min(reach.nearest, tokens);
    made.begin = slots - (tokens - 1);  // entries of an earlier State are invisible
    made.slots = tokens - made.skipped;
    made.visibility.causal = true;
    made.counts = torch::arange(1, made.slots + 1, of_counts(queries)).view({1, -1, 1});
    if (const auto most = reach.farthest - reach.nearest + 1; reach.farthest > 0) {
      made.band = made.slots > most ? most : 0;
      made.counts = made.counts.clamp_max(static_cast<double>(most));
    }
    return made;
  }
  if (tokens == 1 && cache.all_valid()) {  // one query sees a contiguous range
    const auto end = std::max<std::int64_t>(0, slots - (reach.nearest - 1));
    made.begin = reach.farthest > 0 ? std::max<std::int64_t>(0, slots - reach.farthest) : 0;
    made.slots = std::max<std::int64_t>(0, end - made.begin);
    made.skipped = made.slots > 0 ? 0 : 1;
    made.counts = torch::full({1, 1, 1}, static_cast<double>(made.slots), of_counts(queries));
    return made;
  }
  return masked_visibility(cache, reach, queries);
}

PairVisibility make_pair_visibility(
    const KvRing& ring, const PairReach& reach, const torch::TensorOptions& queries) {
  const auto& place = ring.place();
  const auto held = ring.held().unsqueeze(1);  // (B, 1, C)
  const auto seen = held >= place.first.unsqueeze(2);
  return masked(seen & in_reach(place.position.unsqueeze(2) - held, reach), queries);
}

MemoryNumbers used_numbers(const MemoryNumbers& stored) {
  constexpr double kMostLogBandwidth = 10, kMostLogValue = 15;
  return {stored.beta_0.clamp_max(kMostLogBandwidth).exp(),
      stored.beta_1.clamp_max(kMostLogBandwidth).exp(), stored.alpha.abs().clamp_max(1),
      stored.value_scale.abs().clamp_max(kMostLogValue).exp(), stored.mix};
}

GatedMemory::GatedMemory(const ShapeOptions& shape)
    : heads_(shape.heads), dropout_(shape.attention_dropout) {
  const auto d = shape.d_model;
  maps_ = register_module("maps", std::make_shared<Linear>(d, 2 * d, /*bias=*/false));
  gates_ = register_module("gates", std::make_shared<Linear>(d, 2 * heads_, /*bias=*/false));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d, d, /*bias=*/false));
  const auto number = [&](const char* name) { return register_parameter(name, blank({heads_})); };
  stored_ = {
      number("beta_0"), number("beta_1"), number("alpha"), number("value_scale"), number("mix")};
}

void GatedMemory::first_values() {
  stored_.beta_0.fill_(1.5);
  stored_.beta_1.fill_(1.5);
  stored_.alpha.fill_(1. / 3);
  stored_.value_scale.zero_();
  stored_.mix.uniform_(0, 1);
}

Tensor GatedMemory::beta(const Tensor& counts) const {
  const auto wide = [&](const Tensor& number) {
    return number.to(counts.dtype()).view({heads_, 1, 1});
  };
  auto stored = stored_;
  for (auto* const number : {&stored.beta_0, &stored.beta_1, &stored.alpha})
    *number = wide(*number);
  const auto used = used_numbers(stored);
  return used.beta_1 * counts.unsqueeze(1).pow(used.alpha) + used.beta_0;
}

Tensor GatedMemory::forward(const Tensor& x, const MosaicCall& call,
    const PairVisibility& visibility, const std::string& name) {
  const auto d = x.size(2), steps = x.size(1);
  const auto mapped = maps_->forward(x), gates = gates_->forward(x);
  const auto u = mapped.narrow(2, d, d);
  const auto gate = gates.narrow(2, 0, heads_), decay = -gates.narrow(2, heads_, heads_).abs();
  const auto used = used_numbers(stored_);
  GatedSums before;
  Tensor value;
  if (!call.opening) {
    before = {call.carried(name + ".sums", x), call.carried(name + ".levels", gate)};
    value = call.carried(name + ".value", x);
  }
  const auto made = gated_keys(mapped.narrow(2, 0, d), gate, decay, before, call.state != nullptr);
  if (call.state != nullptr) {
    call.carry(name + ".sums", made.sums, before.sums);
    call.carry(name + ".levels", made.levels, before.levels);
    call.carry(name + ".value", u, value);
  }
  const auto earlier = made.keys.narrow(1, 0, steps - 1);
  if (call.opening)
    return read(
        made.keys, earlier, mixed_values(u, used.mix, used.value_scale), call, visibility, name);
  const auto ones = torch::ones({heads_}, x.options().requires_grad(false));
  const auto pair_keys = torch::cat({normalised(before.sums, ones).unsqueeze(1), earlier}, 1);
  const auto values =
      mixed_values(torch::cat({value.unsqueeze(1), u}, 1), used.mix, used.value_scale);
  return read(made.keys, pair_keys, values, call, visibility, name);
}

Tensor GatedMemory::read(const Tensor& keys, const Tensor& pair_keys, const Tensor& values,
    const MosaicCall& call, const PairVisibility& visibility, const std::string& name) {
  const auto rows = keys.size(0), steps = keys.size(1), d = keys.size(2);
  const auto nothing = [&](std::int64_t n) {
    return torch::zeros({rows, n, d}, keys.options().requires_grad(false));
  };
  if (call.opening && steps == 1) return nothing(1);  // no pair is complete yet
  const auto k = call.cache->extend(name + ".k", heads_apart(pair_keys, heads_));
  const auto v = call.cache->extend(name + ".v", heads_apart(values, heads_));
  const auto asking = steps - visibility.skipped;
  if (asking == 0) return nothing(steps);
  const auto scaled = heads_apart(keys.narrow(1, visibility.skipped, asking), heads_) *
                      beta(visibility.counts).to(keys.dtype());
  const auto seen_k = k.narrow(2, visibility.begin, visibility.slots),
             seen_v = v.narrow(2, visibility.begin, visibility.slots);
  const auto dropout = is_training() ? dropout_ : 0.0;
  const Scores as_they_are{.scale = 1};
  auto y = (visibility.band > 0
                ? attend_band(scaled, seen_k, seen_v, visibility.band, dropout, as_they_are)
                : attend(scaled, seen_k, seen_v, visibility.visibility, dropout, as_they_are))
               .transpose(1, 2)
               .reshape({rows, asking, d});
  if (visibility.sees.defined()) y = y * visibility.sees.to(y.dtype());
  y = c_proj_->forward(y);
  return visibility.skipped == 0 ? y
                                 : torch::cat({nothing(visibility.skipped).to(y.dtype()), y}, 1);
}

Mosaic2::Mosaic2(const ModelOptions& options, std::int64_t vocabulary)
    : CarryingArchitecture(options, vocabulary), options_(options.mosaic2) {
  check_heads(shape_);
  if (options_.most_delay < options_.delay)
    core::bad_config("long-term-delay-most: {} is less than long-term-delay {}",
        options_.most_delay, options_.delay);
  const auto d = shape_.d_model;
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
             far = make_pair_visibility(
                 cache, {.nearest = delay(), .farthest = 0}, batch.steps(), call.opening, floats);
  if (state != nullptr) rows.mark_started(*state);
  return rows.in_order(run(rows.ids(), call, near, far));
}

Hidden Mosaic2::decode(const Tensor& ids, KvRing& ring, State& kept) {
  const auto call = call_in_ring(ring, kept);
  const auto floats = wte_->parameters()[0].options().requires_grad(false);
  const auto near = make_pair_visibility(
                 ring, {.nearest = 1, .farthest = options_.short_term}, floats),
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
