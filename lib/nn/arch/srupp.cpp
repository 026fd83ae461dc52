#include "nn/arch/srupp.h"

namespace nn {
namespace {

std::int64_t width_of(const ModelOptions& options) {
  const auto asked = options.srupp.d_projection;
  return asked > 0 ? asked : std::max<std::int64_t>(1, options.shape.d_model / 4);
}

void check(const ModelOptions& options) {
  const auto& o = options.srupp;
  const auto width = width_of(options), heads = options.shape.heads;
  if (width % heads != 0)
    core::bad_config("heads: {} does not divide the attention's width {}", heads, width);
  if (o.attention_last > options.shape.layers)
    core::bad_config(
        "attention-last: {} is more than the {} layers", o.attention_last, options.shape.layers);
}

bool attends(const ModelOptions& options, std::int64_t layer) {
  const auto& o = options.srupp;
  const auto above = options.shape.layers - layer;  // this layer included
  if (o.attention_last > 0) return above <= o.attention_last;
  return o.attention_every > 0 && (above - 1) % o.attention_every == 0;
}

}  // namespace

SruppLayer::SruppLayer(const ShapeOptions& shape, const SruppOptions& options, std::int64_t width,
    double norm_epsilon, bool attends)
    : heads_(shape.heads), dropout_(shape.dropout), attention_dropout_(shape.attention_dropout),
      forget_start_(options.forget_bias), highway_start_(options.highway_bias) {
  const auto matrix = [&](const char* name, std::int64_t in, std::int64_t out) {
    return register_module(name, std::make_shared<Linear>(in, out, /*bias=*/false));
  };
  const auto d = shape.d_model;
  project_ = matrix("project", d, width);
  if (attends) {
    keys_values_ = matrix("keys_values", width, 2 * width);
    rezero_ = register_parameter("rezero", blank({1}));
  }
  norm_ = register_module("norm", std::make_shared<LayerNorm>(width, norm_epsilon, /*bias=*/true));
  expand_ = matrix("expand", width, 3 * d);
  weights_.forget = register_parameter("cell_forget", blank({d}));
  weights_.highway = register_parameter("cell_highway", blank({d}));
  weights_.forget_bias = register_parameter("forget_bias", blank({d}));
  weights_.highway_bias = register_parameter("highway_bias", blank({d}));
}

void SruppLayer::first_values() {
  expand_->weight.mul_(std::sqrt(1 - dropout_));
  weights_.forget.uniform_(-1, 1);
  weights_.highway.uniform_(-1, 1);
  if (attends()) rezero_.zero_();
}

torch::Tensor SruppLayer::attend(const torch::Tensor& q, const torch::Tensor& keys_values,
    const KeyVisibility& visibility) const {
  const auto rows = q.size(0), steps = q.size(1), width = q.size(2), slots = keys_values.size(1);
  const auto kv =
      keys_values.view({rows, slots, 2, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
  const auto queries = q.reshape({rows, steps, heads_, width / heads_}).transpose(1, 2);
  const double dropout = is_training() ? attention_dropout_ : 0.0;
  Visibility mask;
  mask.causal = visibility.causal_only() && slots == steps;
  if (!mask.causal) {
    const auto hidden = visibility.hidden(steps, slots, q.device());
    mask.mask = torch::zeros(hidden.sizes(), q.options().requires_grad(false))
                    .masked_fill_(hidden, kHidden);
  }
  return nn::attend(queries, kv[0], kv[1], mask, dropout)
      .transpose(1, 2)
      .reshape({rows, steps, width});
}

torch::Tensor SruppLayer::forward(const torch::Tensor& x, const torch::Tensor& q,
    const torch::Tensor& keys_values, const KeyVisibility& visibility, torch::Tensor& cells,
    const torch::Tensor& steps, torch::Tensor* normalised) {
  const auto z = norm_->forward(attends() ? q + rezero_ * attend(q, keys_values, visibility) : q);
  if (normalised != nullptr) *normalised = z;
  const auto gates = expand_->forward(dropped(z, dropout_, is_training()));
  torch::Tensor mask;
  if (is_training() && dropout_ > 0) mask = torch::dropout(torch::ones_like(cells), dropout_, true);
  const SruWeights weights{weights_.forget, weights_.highway, weights_.forget_bias + forget_start_,
      weights_.highway_bias + highway_start_};
  const auto out = sru_scan(gates, x, cells, weights, mask, steps);
  cells = out.cells;
  return out.h;
}

Srupp::Srupp(const ModelOptions& options, std::int64_t vocabulary)
    : CarryingArchitecture(options, vocabulary), width_(width_of(options)),
      lengths_(parse_layer_memory(options.layer_memory.layer_memory, options.shape.layers)),
      same_length_(parse_same_length(options.layer_memory.same_length)) {
  check(options);
  const auto all = register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const bool with = attends(options, i);
    if (!with) lengths_[static_cast<std::size_t>(i)] = 0;
    layers_.push_back(all->register_module(
        std::to_string(i), std::make_shared<SruppLayer>(shape_, options.srupp, width_,
                               options.transformer.norm_epsilon, with)));
  }
}

std::int64_t Srupp::d_key() const {
  return shape_.memory_key == "output" ? shape_.d_model : width_;
}

Hidden Srupp::forward(const Batch& batch, State* state) {
  LayerMemory memory(batch, state);
  const auto steps = memory.dense() ? torch::Tensor() : memory.count();
  const auto made = run(memory.packed_ids(batch), memory, steps, state);
  return {memory.unpack(made.output), memory.unpack(made.key)};
}

Hidden Srupp::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  const auto& place = ring.place();
  FixedLayerPast past(place, kept);
  return run(ids, past, place.full ? torch::Tensor() : place.count.squeeze(1).contiguous(), &kept);
}

Hidden Srupp::run(
    const torch::Tensor& ids, LayerPast& memory, const torch::Tensor& steps, State* state) {
  auto x = dropped(wte_->forward(ids), shape_.dropout, is_training());
  const auto count = std::ssize(layers_);
  const auto options = x.options().requires_grad(false);
  auto before = state != nullptr && state->has("cells")
                    ? state->tensors["cells"]
                    : torch::zeros({x.size(0), count, shape_.d_model}, options);
  const auto n = x.size(1);
  const bool keep_keys = !is_training() && !torch::GradMode::is_enabled();
  std::vector<torch::Tensor> after;
  torch::Tensor g;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto length = lengths_[static_cast<std::size_t>(i)];
    const auto name = "h." + std::to_string(i);
    auto& layer = *layers_[static_cast<std::size_t>(i)];
    torch::Tensor q, keys_values;
    if (!layer.attends()) {
      q = layer.project(x);
    } else if (keep_keys) {
      q = layer.project(x);
      keys_values = memory.extend(name, layer.keys_values(q), length);
    } else {
      const auto all = layer.project(memory.extend(name, x, length));
      q = all.narrow(1, all.size(1) - n, n);
      keys_values = layer.keys_values(all);
    }
    const auto slots = keys_values.defined() ? keys_values.size(1) : n;
    const KeyVisibility visibility{memory.first_valid(slots - n), same_length_ ? length : -1};
    auto cells = before.select(1, i);
    x = layer.forward(x, q, keys_values, visibility, cells, steps, i + 1 == count ? &g : nullptr);
    after.push_back(cells);
  }
  if (state != nullptr) state->tensors["cells"] = torch::stack(after, 1);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

void Srupp::set_reach(const LayerReach& reach) {
  if (reach.clamp_length >= 0)
    core::bad_usage("--clamp-length: not supported by srupp, which has no positions");
  if (!reach.layer_memory.empty()) {
    lengths_ = parse_layer_memory(reach.layer_memory, shape_.layers);
    for (std::size_t i = 0; i < layers_.size(); ++i)
      if (!layers_[i]->attends()) lengths_[i] = 0;
  }
  if (!reach.same_length.empty()) same_length_ = parse_same_length(reach.same_length);
}

CarriedState Srupp::carried_state(const ModelOptions& options) {
  const auto lengths = parse_layer_memory(options.layer_memory.layer_memory, options.shape.layers);
  CarriedState state{options.shape.layers * options.shape.d_model};  // cells
  for (std::int64_t layer = 0; layer < options.shape.layers; ++layer)
    if (attends(options, layer))
      state.fixed += lengths[static_cast<std::size_t>(layer)] * options.shape.d_model;
  return state;
}

}  // namespace nn
