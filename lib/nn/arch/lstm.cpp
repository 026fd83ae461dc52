#include "nn/arch/lstm.h"

#include "nn/base/upload.h"

namespace nn {

Lstm::Lstm(const ModelOptions& options, std::int64_t vocabulary)
    : CarryingArchitecture(options, vocabulary),
      width_(options.lstm.d_recurrent > 0 ? options.lstm.d_recurrent : options.shape.d_model) {
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const auto end = "_l" + std::to_string(layer);
    const auto in = layer == 0 ? shape_.d_model : width_;
    cells_.push_back(register_parameter("weight_ih" + end, blank({4 * width_, in})));
    cells_.push_back(register_parameter("weight_hh" + end, blank({4 * width_, width_})));
    cells_.push_back(register_parameter("bias_ih" + end, blank({4 * width_})));
    cells_.push_back(register_parameter("bias_hh" + end, blank({4 * width_})));
  }
  if (width_ != shape_.d_model)
    projection_ = register_module(
        "projection", std::make_shared<Linear>(width_, shape_.d_model, /*bias=*/true));
}

Hidden Lstm::forward(const Batch& batch, State* state) {
  const auto real = batch.place.run >= 0;  // (B, T)
  const bool dense = real.all().item<bool>();
  const auto device = batch.inputs.device();
  const auto ids =
      dense ? batch.inputs : batch.inputs.masked_fill(upload(real.logical_not(), device), 0);
  if (state != nullptr && state->has("h")) {
    if (state->tensors["h"].size(0) != batch.rows())
      core::bug("a state of {} rows cannot continue with a batch of {} rows",
          state->tensors["h"].size(0), batch.rows());
    state->reset(batch.fresh);
  }
  // Padding after a row's tokens changes only cells, and without a State no later call reads them.
  const bool behind = state == nullptr &&
                      !(real.slice(1, 1) & real.slice(1, 0, -1).logical_not()).any().item<bool>();
  return advance(ids, dense || behind ? torch::Tensor() : upload(real, device), state);
}

Hidden Lstm::decode(const torch::Tensor& ids, KvRing& ring, State& kept) {
  const auto& count = ring.place().count;
  const auto real =
      ring.place().full ? torch::Tensor() : torch::arange(ids.size(1), count.options()) < count;
  return advance(ids, real, &kept);
}

Hidden Lstm::advance(const torch::Tensor& ids, const torch::Tensor& real, State* state) {
  auto x = dropped(wte_->forward(ids), shape_.dropout, is_training());
  torch::Tensor h, c;  // (layers, B, width)
  if (state != nullptr && state->has("h")) {
    h = state->tensors["h"].transpose(0, 1).contiguous();
    c = state->tensors["c"].transpose(0, 1).contiguous();
  } else {
    h = torch::zeros({shape_.layers, ids.size(0), width_}, x.options().requires_grad(false));
    c = torch::zeros_like(h);
  }
  x = real.defined() ? run_masked(x, real, h, c) : run(x, h, c);
  if (state != nullptr) {
    state->tensors["h"] = h.transpose(0, 1).contiguous();
    state->tensors["c"] = c.transpose(0, 1).contiguous();
  }
  x = dropped(x, shape_.dropout, is_training());
  if (projection_) x = projection_->forward(x);
  return {dropped(x, shape_.head_dropout, is_training()), x};
}

torch::Tensor Lstm::run(const torch::Tensor& x, torch::Tensor& h, torch::Tensor& c) {
  const auto between = shape_.layers > 1 ? shape_.dropout : 0.0;
  torch::Tensor out;
  std::tie(out, h, c) =
      torch::lstm(x, {h, c}, cells_, /*has_biases=*/true, shape_.layers, between, is_training(),
          /*bidirectional=*/false, /*batch_first=*/true);
  return out;
}

torch::Tensor Lstm::run_masked(
    const torch::Tensor& x, const torch::Tensor& real, torch::Tensor& h, torch::Tensor& c) {
  // Runs one step at a time: padding leaves the cells unchanged.
  std::vector<torch::Tensor> out;
  for (std::int64_t t = 0; t < x.size(1); ++t) {
    auto next_h = h, next_c = c;
    out.push_back(run(x.narrow(1, t, 1), next_h, next_c));
    const auto keep = real.narrow(1, t, 1).unsqueeze(0);  // (1, B, 1)
    h = torch::where(keep, next_h, h);
    c = torch::where(keep, next_c, c);
  }
  return torch::cat(out, 1);
}

CarriedState Lstm::carried_state(const ModelOptions& options) {
  const auto width =
      options.lstm.d_recurrent > 0 ? options.lstm.d_recurrent : options.shape.d_model;
  return {2 * options.shape.layers * width};
}

}  // namespace nn
