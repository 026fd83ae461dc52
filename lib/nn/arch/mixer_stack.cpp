#include "nn/arch/mixer.h"

#include "core/plain_text.h"
#include "nn/base/upload.h"
#include "nn/layers/block_stack.h"

namespace nn {
namespace {

constexpr const MixerFacts* kMixers[] = {&gla_mixer, &mamba2_mixer, &rwkv7_mixer, &mamba_mixer,
    &kda_mixer, &window_mixer, &delta_mixer, &retnet_mixer, &linear_mixer, &rwkv4_mixer, &s4d_mixer,
    &h3_mixer, &hyena_mixer, &gated_attention_mixer};

const MixerFacts& mixer_named(const std::string& name) {
  for (const auto* mixer : kMixers)
    if (name == mixer->name) return *mixer;
  const auto names = core::mapped(kMixers, [](const auto* mixer) { return mixer->name; });
  core::bad_config("mixer: takes {}, not '{}'", fmt::join(names, ", "), core::printable(name));
}

/// Returns the mixer of each layer.
std::vector<const MixerFacts*> mixers_of(const ModelOptions& options) {
  const auto names = options.layer_mixers();
  if (names.empty()) core::bad_config("mixer: names no mixer");
  return core::mapped(names, [](const auto& name) { return &mixer_named(name); });
}

// Drops the oldest slots of what attention reads that no row has a token in: the last number is 0.
void drop_empty_slots(State& state) {
  for (auto& [name, tensor] : state.tensors) {
    if (!name.ends_with(kReadByAttention)) continue;
    const auto used = tensor.select(2, -1).any(0).nonzero();
    const auto first = used.size(0) > 0 ? used[0].item<std::int64_t>() : tensor.size(1);
    tensor = tensor.narrow(1, first, tensor.size(1) - first);
  }
}

}  // namespace

Tensor MixerCall::carried(const std::string& name) const {
  return state != nullptr && state->has(name) ? state->tensors[name] : Tensor();
}

void MixerCall::carry(const std::string& name, const Tensor& value) const {
  if (state != nullptr) state->tensors[name] = value;
}

Tensor Mixer::by_head(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), heads_, x.size(2) / heads_});
}

Tensor Mixer::first_state(const Tensor& x, const MixerCall& call, const std::string& name) const {
  const auto carried = call.carried(name + ".state");
  return carried.defined() ? carried
                           : torch::zeros({x.size(0), heads_, d_state_[0], d_state_[1]},
                                 x.options().requires_grad(false));
}

std::shared_ptr<Linear> Mixer::add_matrix(
    const char* name, std::int64_t in, std::int64_t out, bool bias) {
  return register_module(name, std::make_shared<Linear>(in, out, bias));
}

std::shared_ptr<ShortConvolution> Mixer::add_convolution(
    const char* name, std::int64_t width, std::int64_t taps, bool bias, bool swish) {
  carried_.fixed += (taps - 1) * width;
  return register_module(
      name, std::make_shared<ShortConvolution>(width, taps, 1, false, bias, swish));
}

Tensor MixerCall::after_past(const Tensor& x, std::int64_t steps, const std::string& name) const {
  auto before = carried(name);
  if (!before.defined())
    before = torch::zeros({x.size(0), steps, x.size(2)}, x.options().requires_grad(false));
  if (before.size(1) < steps)
    before = at::constant_pad_nd(before, {0, 0, steps - before.size(1), 0});
  const auto all = torch::cat({before.to(x.scalar_type()), x}, 1);
  if (state == nullptr) return all;
  if (!count.defined()) {
    carry(name, all.narrow(1, x.size(1), steps).clone());
  } else {
    const auto last = count.unsqueeze(1) + torch::arange(steps, count.options());
    carry(name, all.gather(1, upload(last, x.device()).unsqueeze(2).expand({-1, -1, x.size(2)})));
  }
  return all;
}

Tensor MixerCall::after_all(const Tensor& x, const std::string& name) const {
  if (state == nullptr) return x;
  const auto before = carried(name);
  const auto slots = x.size(1) + (before.defined() ? before.size(1) : 0);
  const auto all = after_past(x, slots, name);
  return all.narrow(1, all.size(1) - slots, slots);
}

Tensor MixerCall::convolved(
    const Tensor& x, const ShortConvolution& by, const std::string& name) const {
  auto past = carried(name + ".past");
  const auto y = by.forward(x, past, count);
  if (past.defined()) carry(name + ".past", past);
  return y;
}

MixerStack::MixerStack(const ModelOptions& options, std::int64_t vocabulary)
    : CarryingArchitecture(options, vocabulary) {
  const auto mixers = mixers_of(options);
  const auto& block = options.transformer;
  const auto norm = [&](const MixerFacts& of) {
    const auto asked = parse_norm_kind(block.norm_kind);
    const auto kind = asked == NormKind::layer ? of.norm : asked;
    return std::make_shared<LayerNorm>(
        shape_.d_model, block.norm_epsilon, kind == NormKind::layer && block.bias, kind);
  };
  if (mixers[0]->first_norm) ln_0_ = register_module("ln_0", norm(*mixers[0]));
  const MemoryNetworks memories(options.memory_layer, shape_, *this);
  const auto layers = add_layers(*this, "h", shape_.layers);
  std::map<const MixerFacts*, std::int64_t> before;
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const auto& of = *mixers[static_cast<std::size_t>(i)];
    const auto& layer = layers[static_cast<std::size_t>(i)];
    auto& made = layers_.emplace_back();
    made.ln_1 = layer->register_module("ln_1", norm(of));
    if (of.second != MixerFacts::Second::none) made.ln_2 = layer->register_module("ln_2", norm(of));
    made.mixer = layer->register_module("mixer", of.make(options, before[&of]));
    grows_ = grows_ || made.mixer->carried().per_token > 0;
    if (of.second == MixerFacts::Second::own)
      made.own = layer->register_module("mlp", of.make_network(options, before[&of]));
    if (of.second == MixerFacts::Second::network)
      made.mlp = memories.add(i, *layer,
          std::make_shared<FeedForward>(shape_, parse_activation(block.activation), block.bias,
              block.feed_forward == "gated"));
    ++before[&of];
  }
  ln_f_ = register_module("ln_f", norm(*mixers.back()));
}

Hidden MixerStack::forward(const Batch& batch, State* state) {
  const RealFirst rows(batch);
  MixerCall call;
  call.state = state;
  if (!rows.dense()) call.count = rows.count();
  if (state != nullptr && !state->tensors.empty()) {
    const auto rows_before = state->tensors.begin()->second.size(0);
    if (rows_before != batch.rows())
      core::bug(
          "a state of {} rows cannot continue with a batch of {} rows", rows_before, batch.rows());
    state->reset(batch.fresh);
    if (grows_ && batch.fresh.defined() && batch.fresh.any().item<bool>()) drop_empty_slots(*state);
  }
  const auto made = run(rows.packed_ids(batch), call);
  return {rows.unpack(made.output), rows.unpack(made.key)};
}

Hidden MixerStack::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  MixerCall call;
  call.state = &kept;
  if (!ring.place().full) call.count = ring.place().count.squeeze(1);
  return run(ids, call);
}

Hidden MixerStack::run(const torch::Tensor& ids, const MixerCall& rows) {
  const auto drop = [&](const Tensor& y) { return dropped(y, shape_.dropout, is_training()); };
  auto call = rows;
  auto x = drop(wte_->forward(ids));
  if (ln_0_ != nullptr) x = ln_0_->forward(x);
  if (call.count.defined()) {
    const auto real = torch::arange(ids.size(1), call.count.options()) < call.count.unsqueeze(1);
    call.real = upload(real.unsqueeze(2), x.device()).to(x.scalar_type());
  }
  Tensor g;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto name = "h." + std::to_string(i);
    g = layer.ln_1->forward(x);
    x = x + drop(layer.mixer->forward(g, call, name));
    if (layer.ln_2 == nullptr) continue;
    g = layer.ln_2->forward(x);
    x = x + drop(layer.mlp ? layer.mlp->forward(g) : layer.own->forward(g, call, name));
  }
  x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

void MixerStack::forget(State& state, std::int64_t keep) {
  for (auto& [name, tensor] : state.tensors)
    if (name.ends_with(kReadByAttention) && tensor.size(1) > keep)
      tensor = tensor.narrow(1, tensor.size(1) - keep, keep);
}

CarriedState MixerStack::carried_state(const ModelOptions& options) {
  const ShapesOnly shapes;
  std::map<const MixerFacts*, CarriedState> of;
  CarriedState state;
  for (const auto* const mixer : mixers_of(options)) {
    if (!of.contains(mixer)) of[mixer] = mixer->make(options, 0)->carried();
    state.fixed += of[mixer].fixed;
    state.per_token += of[mixer].per_token;
  }
  return state;
}

}  // namespace nn
