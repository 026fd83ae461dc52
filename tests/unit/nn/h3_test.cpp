// H3, compared with its two recurrences written out token by token.

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "plain_layers.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;

Tensor plain_h3_mixer(const Tensor& reads, const plain::Module& of) {
  const auto d = reads.size(1);
  const bool shifts = of.w.contains(of.name + ".shift.weight");
  std::vector<Tensor> queries, keys, inputs, out;
  for (std::int64_t t = 0; t < reads.size(0); ++t) {
    const auto qkv = of.map("c_in", reads[t]);
    queries.push_back(qkv.narrow(0, 0, d));
    keys.push_back(qkv.narrow(0, d, d));
    const auto k = shifts ? plain::newest(keys, of("shift.weight")) : keys.back();
    inputs.push_back(k * qkv.narrow(0, 2 * d, d));
  }
  const auto y = plain::diagonal_space(inputs, of);
  for (std::int64_t t = 0; t < reads.size(0); ++t)
    out.push_back(of.map("c_proj", queries[static_cast<std::size_t>(t)] * y[t]));
  return torch::stack(out);
}

nn::Hidden plain_h3(const Tensor& ids, const properties::Weights& w) {
  return plain::two_layers(ids, w, "h3", plain_h3_mixer);
}

}  // namespace

DOCTEST_TEST_CASE("an h3 equals its recurrences in values and gradients, by transforms too") {
  auto options = properties::small_options("h3");
  for (const std::int64_t taps : {4, 1, 7})
    for (const std::int64_t steps : {1, 9, 33, 75}) {
      DOCTEST_CAPTURE(taps);
      DOCTEST_CAPTURE(steps);
      options.gla.convolution = taps;
      const auto compared = [&](torch::ScalarType type, double close) {
        return properties::check_against_loops(options, plain_h3, steps, type, close);
      };
      // Embedding, last norm, then each layer's norms, maps, shift, state space and network.
      DOCTEST_CHECK(
          compared(torch::kFloat64, 1e-9) == 1 + 2 + 2 * (4 + 4 + (taps > 1 ? 1 : 0) + 5 + 4));
      compared(torch::kFloat32, 3e-3);
      const nn::AsDevice device;
      compared(torch::kFloat64, 1e-9);
    }
}

DOCTEST_TEST_CASE("an h3 carries a State of constant size") {
  const auto options = properties::small_options("h3");
  const auto model = properties::strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  DOCTEST_CHECK(state.bytes() == 8 * 2 * 8 * (options.mixers.state + 3));
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == 2 * model->state_bytes(52));
}
