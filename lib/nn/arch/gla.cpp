#include "nn/arch/gla.h"

#include <cmath>
#include <string>

#include "core/error.h"
#include "nn/base/upload.h"
#include "nn/layers/embedding.h"
#include "nn/ops/gla_scan.h"

namespace nn {
namespace {

constexpr double kGateRoot = 16;  // decays start near 1

}  // namespace

GatedLinearAttention::GatedLinearAttention(const ShapeOptions& shape, double norm_epsilon)
    : heads_(shape.heads), d_(shape.d_model) {
  const auto matrix = [&](const char* name, std::int64_t in, std::int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(in, out, bias));
  };
  c_in_ = matrix("c_in", d_, 3 * d_, false);  // q, k: d / 2 each; v, r: d each
  gate_down_ = matrix("gate_down", d_, kGlaGateRank, false);
  gate_up_ = matrix("gate_up", kGlaGateRank, d_ / 2, true);
  norm_ = register_module("norm", std::make_shared<LayerNorm>(d_ / heads_, norm_epsilon, false));
  c_proj_ = matrix("c_proj", d_, d_, false);
}

torch::Tensor GatedLinearAttention::first_state(std::int64_t rows,
                                                const torch::TensorOptions& options) const {
  return torch::zeros({rows, heads_, d_ / 2 / heads_, d_ / heads_}, options);
}

torch::Tensor GatedLinearAttention::forward(const torch::Tensor& x, const torch::Tensor& real,
                                            torch::Tensor& state) {
  const auto rows = x.size(0), steps = x.size(1), d_key = d_ / 2 / heads_;
  const auto by_head = [&](const torch::Tensor& y) {
    return y.reshape({rows, steps, heads_, y.size(2) / heads_});
  };
  const auto parts = c_in_->forward(x).split_with_sizes({d_ / 2, d_ / 2, d_, d_}, 2);
  auto k = parts[1];
  auto log_decay = torch::log_sigmoid(gate_up_->forward(gate_down_->forward(x))) * (1 / kGateRoot);
  if (real.defined()) {
    k = k * real;
    log_decay = log_decay * real;
  }
  const auto out = gla_scan({by_head(parts[0]) * (1 / std::sqrt(static_cast<double>(d_key))),
                             by_head(k), by_head(log_decay), by_head(parts[2]), state});
  state = out.state;
  return c_proj_->forward(norm_->forward(out.o).reshape({rows, steps, d_}) * torch::silu(parts[3]));
}

Gla::Gla(const ModelOptions& options, std::int64_t vocabulary) : shape_(options.shape) {
  if (shape_.heads < 1 || shape_.d_model % (2 * shape_.heads) != 0)
    core::fail(core::Code::bad_config, "heads: twice {} does not divide d-model {}", shape_.heads,
               shape_.d_model);
  const auto& block = options.transformer;
  wte_ = register_module("wte", make_embedding(options, vocabulary));
  const auto norm = [&] {
    return std::make_shared<LayerNorm>(shape_.d_model, block.norm_epsilon, block.bias);
  };
  for (const auto& layer : add_layers(*this, "h", shape_.layers)) {
    layers_.push_back(
        {layer->register_module("ln_1", norm()), layer->register_module("ln_2", norm()),
         layer->register_module("mixer",
                                std::make_shared<GatedLinearAttention>(shape_, block.norm_epsilon)),
         layer->register_module(
             "mlp", std::make_shared<FeedForward>(shape_, parse_activation(block.activation),
                                                  block.bias))});
  }
  ln_f_ = register_module("ln_f", norm());
}

Hidden Gla::forward(const Batch& batch, State* state) {
  const auto places = batch.place.run >= 0;  // (B, T)
  const bool dense = places.all().item<bool>();
  auto ids = batch.inputs;
  torch::Tensor real;  // (B, T, 1)
  if (!dense) ids = ids.masked_fill(upload(places.logical_not(), ids.device()), 0);
  const auto drop = [&](const torch::Tensor& y) {
    return dropped(y, shape_.dropout, is_training());
  };
  auto x = drop(wte_->forward(ids));
  if (!dense) real = upload(places, ids.device()).to(x.scalar_type()).unsqueeze(2);
  if (state != nullptr && state->has("h.0.state")) {
    if (state->tensors["h.0.state"].size(0) != batch.rows())
      core::fail(core::Code::bug, "a State of {} rows cannot go on with a batch of {} rows",
                 state->tensors["h.0.state"].size(0), batch.rows());
    state->reset(batch.fresh);
  }
  torch::Tensor g;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto name = "h." + std::to_string(i) + ".state";
    auto own = state != nullptr && state->has(name)
                   ? state->tensors[name]
                   : layer.mixer->first_state(batch.rows(), x.options().requires_grad(false));
    x = x + drop(layer.mixer->forward(layer.ln_1->forward(x), real, own));
    if (state != nullptr) state->tensors[name] = own;
    g = layer.ln_2->forward(x);
    x = x + drop(layer.mlp->forward(g));
  }
  x = ln_f_->forward(x);
  if (shape_.memory_key == "output") g = x;
  return {dropped(x, shape_.head_dropout, is_training()), g};
}

}  // namespace nn
