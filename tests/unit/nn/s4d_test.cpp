// S4D, compared with its recurrence written out token by token; its initial values.

#include <doctest/doctest.h>

#include "nn/arch/s4d.h"
#include "nn/base/cuda.h"
#include "plain_layers.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;

Tensor plain_s4d_mixer(const Tensor& reads, const plain::Module& of) {
  std::vector<Tensor> inputs, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) inputs.push_back(reads[t]);
  const auto y = plain::diagonal_space(inputs, of);
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    const auto gelu = y[t] / 2 * (1 + (y[t] / std::sqrt(2.0)).erf());
    const auto both = of.map("c_proj", gelu);
    const auto width = reads.size(1);
    out.push_back(both.narrow(0, 0, width) * plain::sigmoid(both.narrow(0, width, width)));
  }
  return torch::stack(out);
}

}  // namespace

DOCTEST_TEST_CASE("an s4d equals its recurrence in values and gradients, by transforms too") {
  const auto plain_s4d = [](const Tensor& ids, const properties::Weights& w) {
    return plain::two_layers(ids, w, "s4d", plain_s4d_mixer);
  };
  for (const std::int64_t steps : {1, 9, 32, 33, 75, 128}) {
    DOCTEST_CAPTURE(steps);
    const auto compared = [&](torch::ScalarType type, double close) {
      return properties::check_against_loops(
          properties::small_options("s4d"), plain_s4d, steps, type, close);
    };
    // Embedding, last norm, then each layer's norms, state space, map and network.
    DOCTEST_CHECK(compared(torch::kFloat64, 1e-9) == 1 + 2 + 2 * (4 + 5 + 2 + 4));
    compared(torch::kFloat32, 2e-3);
    const nn::AsDevice device;
    compared(torch::kFloat64, 1e-9);
  }
}

DOCTEST_TEST_CASE("an s4d begins as S4D-Lin") {
  nn::DiagonalStateSpace space(400, 8);
  const torch::NoGradGuard no_gradient;
  space.first_values();
  const auto of = space.named_parameters();
  DOCTEST_CHECK(of["a_log"].allclose(torch::full({1600}, std::log(0.5))));
  const auto imaginary = of["a_imaginary"].view({400, 4});
  for (std::int64_t i = 0; i < 4; ++i)
    DOCTEST_CHECK(
        imaginary.select(1, i).allclose(torch::full({400}, M_PI * static_cast<double>(i))));
  const auto dt = of["dt_log"].exp();
  DOCTEST_CHECK(dt.min().item<double>() > 0.0009999);
  DOCTEST_CHECK(dt.max().item<double>() < 0.1001);
  DOCTEST_CHECK(std::abs(of["dt_log"].mean().item<double>() - std::log(0.01)) < 0.3);
  DOCTEST_CHECK(std::abs(of["c"].std().item<double>() - std::sqrt(0.5)) < 0.05);
  for (const auto& item : of) DOCTEST_CHECK(item.value().dim() == 1);  // without weight decay
}

DOCTEST_TEST_CASE("an s4d's State has the planned size, and odd sizes are refused") {
  auto options = properties::small_options("s4d");
  const auto model = properties::strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(50, 1)}), &state);
  DOCTEST_CHECK(state.bytes() == 8 * 2 * 8 * options.mixers.state);
  DOCTEST_CHECK(state.bytes() == 2 * model->state_bytes(50));
  options.mixers.state = 7;
  DOCTEST_CHECK(
      properties::refusal(options) == "channel-state: 7 is odd; its numbers are in pairs");
}
