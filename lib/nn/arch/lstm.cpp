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
    if (!one_state_)
      memories_.push_back(register_module(
          "memory" + end, std::make_shared<StateMemory>(options.state_memory, in, 1)));
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
  if (!one_state_) {
    const RealFirst rows(batch);
    const auto made = advance(rows.packed_ids(batch), {}, state, rows.count());
    return {rows.unpack(made.output), rows.unpack(made.key)};
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

Hidden Lstm::advance(
    const torch::Tensor& ids, const torch::Tensor& real, State* state, const torch::Tensor& count) {
  auto x = dropped(wte_->forward(ids), shape_.dropout, is_training());
  torch::Tensor h, c;  // (layers, B, width)
  if (state != nullptr && state->has("h")) {
    h = state->tensors["h"].transpose(0, 1).contiguous();
    c = state->tensors["c"].transpose(0, 1).contiguous();
  } else {
    h = torch::zeros({shape_.layers, ids.size(0), width_}, x.options().requires_grad(false));
    c = torch::zeros_like(h);
  }
  if (!one_state_) x = run_with_memories(x, {state, count, {}, {}}, h, c);
  else x = real.defined() ? run_masked(x, real, h, c) : run(x, h, c);
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

torch::Tensor Lstm::run_with_memories(
    torch::Tensor x, MixerCall call, torch::Tensor& h, torch::Tensor& c) {
  const auto b = x.size(0), steps = x.size(1);
  const auto count = upload(call.count, x.device()).view({b, 1, 1});
  call.real = (torch::arange(steps, count.options()).unsqueeze(1) < count).to(x.scalar_type());
  std::vector<torch::Tensor> last_h, last_c;
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const auto end = "_l" + std::to_string(layer);
    const at::TensorList cells(&cells_[static_cast<std::size_t>(4 * layer)], 4);
    const auto first_h = h.narrow(0, layer, 1), first_c = c.narrow(0, layer, 1);
    const auto out = torch::lstm(x, {first_h, first_c}, cells, /*has_biases=*/true, 1, 0,
        is_training(), /*bidirectional=*/false, /*batch_first=*/true);
    const auto all = torch::cat({first_h.transpose(0, 1), std::get<0>(out)}, 1);
    const auto of_last = torch::linear(all.slice(1, 0, -1), cells[1], cells[3]);
    const auto gates = (torch::linear(x, cells[0], cells[2]) + of_last).unsqueeze(3).chunk(4, 2);
    const auto real = call.real.unsqueeze(3),
               in = torch::sigmoid(gates[0]) * torch::tanh(gates[2]) * real,
               ones = torch::ones_like(in.detach());
    const auto read = memories_[static_cast<std::size_t>(layer)]->read(x,
        {{ones, in, at::log_sigmoid(gates[1]) * real}, ones, scan_gla},
        first_c.view({b, width_, 1, 1}), call, "memory" + end);
    last_h.push_back(all.gather(1, count.expand({b, 1, width_})).squeeze(1));
    last_c.push_back(read.state.flatten(1));
    x = (torch::sigmoid(gates[3]) * torch::tanh(read.o)).squeeze(3);
    if (layer + 1 < shape_.layers) x = dropped(x, shape_.dropout, is_training());
  }
  h = torch::stack(last_h), c = torch::stack(last_c);
  return x;
}

CarriedState Lstm::carried_state(const ModelOptions& options) {
  const auto &d = options.shape.d_model, &layers = options.shape.layers;
  const auto width = options.lstm.d_recurrent > 0 ? options.lstm.d_recurrent : d;
  std::int64_t numbers = 2 * layers * width;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    numbers += StateMemory::carried(options.state_memory, layer == 0 ? d : width, width);
  return {numbers};
}

}  // namespace nn
