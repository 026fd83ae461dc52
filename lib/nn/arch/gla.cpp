#include "nn/arch/gla.h"

#include <string>

#include "core/error.h"
#include "nn/base/upload.h"
#include "nn/layers/embedding.h"
#include "nn/layers/memory_networks.h"
#include "nn/layers/real_first.h"

namespace nn {
namespace {

void check_gla(const ShapeOptions& shape, const GlaOptions& options) {
  using core::Code;
  using core::fail;
  if (shape.heads < 1 || shape.d_model % (2 * shape.heads) != 0)
    fail(Code::bad_config, "heads: twice {} does not divide d-model {}", shape.heads,
         shape.d_model);
  if (options.decay != "fixed") return;
  if (options.update == "delta")
    fail(Code::bad_config,
         "gla-decay: fixed (RetNet) requires gla-update sum; with delta, give gated or none");
  if (shape.d_model % (4 * shape.heads) != 0)
    fail(Code::bad_config, "gla-decay: fixed needs keys of even width, not {}",
         shape.d_model / 2 / shape.heads);
}

}  // namespace

Gla::Gla(const ModelOptions& options, std::int64_t vocabulary) : shape_(options.shape) {
  check_gla(shape_, options.gla);
  const auto& block = options.transformer;
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape_.d_model, block.norm_epsilon, block.bias);
  };
  const MemoryNetworks memories(options.memory_layer, shape_, *this);
  const auto layers = add_layers(*this, "h", shape_.layers);
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const auto& layer = layers[static_cast<std::size_t>(i)];
    layers_.push_back({layer->register_module("ln_1", norm()),
                       layer->register_module("ln_2", norm()),
                       layer->register_module("mixer", make_gla_mixer(options)),
                       memories.add(i, *layer,
                                    std::make_shared<FeedForward>(
                                        shape_, parse_activation(block.activation), block.bias))});
  }
  ln_f_ = register_module("ln_f", norm());
}

Hidden Gla::forward(const Batch& batch, State* state) {
  const RealFirst rows(batch);
  GlaCall call;
  call.state = state;
  if (!rows.dense()) call.count = rows.count();
  if (state != nullptr && state->has("h.0.state")) {
    if (state->tensors["h.0.state"].size(0) != batch.rows())
      core::fail(core::Code::bug, "a state of {} rows cannot continue with a batch of {} rows",
                 state->tensors["h.0.state"].size(0), batch.rows());
    state->reset(batch.fresh);
  }
  const auto made = run(rows.packed_ids(batch), call);
  return {rows.unpack(made.output), rows.unpack(made.key)};
}

Hidden Gla::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  GlaCall call;
  call.state = &kept;
  if (!ring.place().full) call.count = ring.place().count.squeeze(1);
  return run(ids, call);
}

Hidden Gla::run(const torch::Tensor& ids, const GlaCall& rows) {
  const auto drop = [&](const torch::Tensor& y) {
    return dropped(y, shape_.dropout, is_training());
  };
  auto call = rows;
  auto x = drop(wte_->forward(ids));
  if (call.count.defined()) {
    const auto real = torch::arange(ids.size(1), call.count.options()) < call.count.unsqueeze(1);
    call.real = upload(real.unsqueeze(2), x.device()).to(x.scalar_type());
  }
  torch::Tensor g;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    x = x + drop(layer.mixer->forward(layer.ln_1->forward(x), call, "h." + std::to_string(i)));
    g = layer.ln_2->forward(x);
    x = x + drop(layer.mlp->forward(g));
  }
  x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

// Each head has a matrix of half its width by its full width.
CarriedState Gla::carried_state(const ModelOptions& options) {
  const std::int64_t d = options.shape.d_model;
  std::int64_t a_layer = d / 2 * (d / options.shape.heads);
  if (options.gla.update == "delta") a_layer += (options.gla.convolution - 1) * 2 * d;
  return {options.shape.layers * a_layer};
}

}  // namespace nn
