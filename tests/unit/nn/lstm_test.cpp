// The LSTM, compared with torch's own module.

#include <doctest/doctest.h>

#include <torch/nn/modules/rnn.h>

#include "nn/arch/lstm.h"
#include "plain_states.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::random_ids;

nn::ModelOptions lstm_options() {
  auto options = properties::small_options("lstm");
  options.shape.layers = 3;
  options.vocabulary.scale_embedding = false;
  return options;
}

}  // namespace

DOCTEST_TEST_CASE("the LSTM equals torch's module in values and gradients") {
  const auto model = properties::strong_model(lstm_options());
  torch::nn::LSTM theirs(torch::nn::LSTMOptions(8, 8).num_layers(3).batch_first(true));
  theirs->to(torch::kFloat64);
  auto weights = model->named_parameters();
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : theirs->named_parameters()) item.value().copy_(weights["lstm." + item.key()]);
  }
  const auto batch = batch_of({random_ids(7, 1), random_ids(7, 2)});
  const auto ours = model->architecture->forward(batch, nullptr);
  const auto x = torch::embedding(weights["lstm.wte.weight"].detach(), batch.inputs);
  const auto expected = std::get<0>(theirs->forward(x));
  DOCTEST_CHECK((ours.output - expected).abs().max().item<double>() < 1e-12);
  DOCTEST_CHECK(torch::equal(ours.output, ours.key));
  const auto direction = torch::randn_like(expected);
  (ours.output * direction).sum().backward();
  (expected * direction).sum().backward();
  for (auto& item : theirs->named_parameters()) {
    DOCTEST_CAPTURE(item.key());
    DOCTEST_CHECK(
        (item.value().grad() - weights["lstm." + item.key()].grad()).abs().max().item<double>() <
        1e-10);
  }
}

namespace {

// A layer of three, by its formulas, token by token.
struct PlainLayer {
  PlainLayer(const nn::ModelOptions& o, const plain::Weights& weights, std::int64_t layer)
      : w(weights), end("_l" + std::to_string(layer)),
        states(o.state_memory, weights, "lstm.memory" + end + ".", 0, 1) {}

  torch::Tensor next(const torch::Tensor& x) {
    const auto of = [&](const char* part) { return w.at(std::string("lstm.") + part + end); };
    const auto gates =
        of("weight_ih").mv(x) + of("bias_ih") + of("weight_hh").mv(h) + of("bias_hh");
    const auto gate = gates.chunk(4);
    const auto forget = torch::sigmoid(gate[1]),
               added = torch::sigmoid(gate[0]) * torch::tanh(gate[2]);
    c = forget * c + added;
    h = torch::sigmoid(gate[3]) * torch::tanh(c);
    const auto read = states.next(
        x, [&](const torch::Tensor& s) { return forget.unsqueeze(1) * s; }, added.unsqueeze(1));
    return torch::sigmoid(gate[3]) * torch::tanh(read.squeeze(1));
  }

  const plain::Weights& w;
  std::string end;
  plain::States states;
  torch::Tensor h = torch::zeros({7}, torch::kFloat64), c = torch::zeros({7}, torch::kFloat64);
};

}  // namespace

DOCTEST_TEST_CASE("the LSTM with a memory of states equals its formulas, values and gradients") {
  const std::vector<nn::StateMemoryOptions> memories = {
      {"segments", 4, 3, 2}, {"segments", 1, 50, 2}, {"fenwick", 1, 1, 12}, {"fenwick", 1, 1, 4}};
  for (const auto& memory : memories) {
    DOCTEST_CAPTURE(memory.kind);
    auto options = lstm_options();
    options.lstm.d_recurrent = 7, options.state_memory = memory;
    const auto model = properties::strong_model(options);
    plain::Weights weights;
    for (const auto& [name, weight] : model->named_weights()) weights[name] = weight;
    const auto ids = random_ids(40, 1);
    nn::State state;
    std::vector<torch::Tensor> parts;
    std::ptrdiff_t at = 0;
    for (const std::ptrdiff_t n : {3, 1, 36}) {
      const properties::Ids part(ids.begin() + at, ids.begin() + at + n);
      parts.push_back(model->architecture->forward(batch_of({part}, at == 0), &state).output[0]);
      at += n;
    }
    std::vector<PlainLayer> layers;
    for (std::int64_t i = 0; i < 3; ++i) layers.emplace_back(options, weights, i);
    std::vector<torch::Tensor> expected;
    for (const auto id : ids) {
      auto x = weights.at("lstm.wte.weight")[id];
      for (auto& layer : layers) x = layer.next(x);
      expected.push_back(
          weights.at("lstm.projection.weight").mv(x) + weights.at("lstm.projection.bias"));
    }
    const auto ours = torch::cat(parts), theirs = torch::stack(expected);
    properties::check_same(*model, {ours, ours}, {theirs, theirs}, 1e-10);
  }
}

DOCTEST_TEST_CASE("the LSTM carries a State of constant size") {
  const auto model = properties::strong_model(lstm_options());
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  const auto bytes = state.bytes();
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == bytes);
}

DOCTEST_TEST_CASE("dropout between layers acts in training alone") {
  auto options = lstm_options();
  options.shape.dropout = 0.4;
  const auto model = properties::strong_model(options);
  const auto batch = batch_of({random_ids(7, 1)});
  const auto sure = model->architecture->forward(batch, nullptr).output;
  DOCTEST_CHECK(torch::equal(model->architecture->forward(batch, nullptr).output, sure));
  model->train();
  DOCTEST_CHECK_FALSE(torch::allclose(model->architecture->forward(batch, nullptr).output, sure));
}
