// The LSTM, compared with torch's own module.

#include <doctest/doctest.h>

#include <torch/nn/modules/rnn.h>

#include "nn/arch/lstm.h"
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
