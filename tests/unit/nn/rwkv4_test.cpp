// RWKV-4, compared with its averages as sums over all tokens before, each in logarithms.

#include <doctest/doctest.h>

#include "nn/base/cuda.h"
#include "plain_layers.h"

namespace {

using properties::batch_of;
using properties::random_ids;
using torch::Tensor;

// The average at the last of the tokens with keys and values (d) each.
Tensor plain_average(
    const std::vector<Tensor>& keys, const std::vector<Tensor>& values, const plain::Module& of) {
  std::vector<Tensor> terms;
  const auto t = keys.size() - 1;
  for (std::size_t s = 0; s < t; ++s)
    terms.push_back(keys[s] - static_cast<double>(t - 1 - s) * of("decay").exp());
  terms.push_back(of("bonus") + keys[t]);
  return (torch::stack(terms).softmax(0) * torch::stack(values)).sum(0);
}

nn::Hidden plain_rwkv4(const Tensor& ids, const properties::Weights& w) {
  const plain::Module all{w, "rwkv4"};
  const auto norm = [&](const Tensor& x, const std::string& name) {
    return plain::layer_norm(x, w["rwkv4." + name + ".weight"], w["rwkv4." + name + ".bias"]);
  };
  const auto d = w["rwkv4.ln_f.weight"].size(0);
  const std::vector<std::string> layers = {"h.0.", "h.1."};
  std::vector<Tensor> last(2, torch::zeros({d}, torch::kFloat64)), channel = last, f, g;
  std::vector<std::vector<Tensor>> keys(2), values(2);
  for (std::int64_t t = 0; t < ids.size(0); ++t) {
    auto x =
        norm(w["rwkv4.wte.weight"][ids[t].item<std::int64_t>()] * std::sqrt(static_cast<double>(d)),
            "ln_0");
    Tensor read;
    for (std::size_t i = 0; i < 2; ++i) {
      const plain::Module of{w, "rwkv4." + layers[i] + "mixer"},
          network{w, "rwkv4." + layers[i] + "mlp"};
      const auto mixed = [&](const plain::Module& part, const Tensor& now, const Tensor& before,
                             std::int64_t m) {
        const auto share = part("mix").narrow(0, m * d, d);
        return now * share + before * (1 - share);
      };
      read = norm(x, layers[i] + "ln_1");
      keys[i].push_back(of.map("k", mixed(of, read, last[i], 0)));
      values[i].push_back(of.map("v", mixed(of, read, last[i], 1)));
      const auto r = plain::sigmoid(of.map("r", mixed(of, read, last[i], 2)));
      x = x + of.map("c_proj", r * plain_average(keys[i], values[i], of));
      last[i] = read;
      read = norm(x, layers[i] + "ln_2");
      const auto inner =
          network.map("c_fc", mixed(network, read, channel[i], 0)).clamp_min(0).square();
      x = x + plain::sigmoid(network.map("r", mixed(network, read, channel[i], 1))) *
                  network.map("c_proj", inner);
      channel[i] = read;
    }
    f.push_back(norm(x, "ln_f"));
    g.push_back(read);
  }
  return {torch::stack(f), torch::stack(g)};
}

}  // namespace

DOCTEST_TEST_CASE("an rwkv4 equals its sums in values and gradients, over chunks too") {
  for (const std::int64_t steps : {1, 7, 75}) {
    DOCTEST_CAPTURE(steps);
    const auto compared = [&](torch::ScalarType type, double close) {
      return properties::check_against_loops(
          properties::small_options("rwkv4"), plain_rwkv4, steps, type, close);
    };
    // Embedding, two norms, then each layer's norms, mixing and network.
    DOCTEST_CHECK(compared(torch::kFloat64, 1e-9) == 1 + 2 * 2 + 2 * (4 + 3 + 4 + 1 + 3));
    compared(torch::kFloat32, 2e-3);
    const nn::AsDevice device;
    compared(torch::kFloat64, 1e-9);
  }
}

DOCTEST_TEST_CASE("an rwkv4's averages hold for keys, decays and bonuses of any size") {
  const torch::NoGradGuard no_gradient;
  for (const double keys : {1e-3, 50.0, 1000.0})
    for (const double bonus : {-900.0, 0.0, 900.0})
      for (const double decay : {-20.0, 0.0, 6.0}) {  // 6: e^-403 a step
        DOCTEST_CAPTURE(keys);
        DOCTEST_CAPTURE(bonus);
        DOCTEST_CAPTURE(decay);
        const auto model = properties::strong_model(properties::small_options("rwkv4"));
        const auto weights = model->named_parameters();
        for (const auto& item : weights) {
          const auto& name = item.key();
          if (name.find("mixer.k.weight") != std::string::npos) Tensor(item.value()).mul_(keys);
          if (name.find("mixer.bonus") != std::string::npos) Tensor(item.value()).fill_(bonus);
          if (name.find("mixer.decay") != std::string::npos) Tensor(item.value()).fill_(decay);
        }
        const auto ids = random_ids(60, 5);
        const auto want = plain_rwkv4(torch::tensor(ids), weights);
        const auto whole = model->architecture->forward(batch_of({ids}), nullptr);
        DOCTEST_CHECK(properties::gap(whole.output[0], want.output) < 1e-9);
        nn::State state;
        for (std::int64_t t = 0; t < 60; t += 20) {
          const auto part = model->architecture->forward(
              batch_of({properties::Ids(ids.begin() + t, ids.begin() + t + 20)}, t == 0), &state);
          DOCTEST_CHECK(properties::gap(part.output[0], want.output.narrow(0, t, 20)) < 1e-9);
        }
      }
}

DOCTEST_TEST_CASE("an rwkv4 begins as published and carries a State of constant size") {
  auto options = properties::small_options("rwkv4");
  const nn::Model first(options, properties::kVocabulary);
  const auto of = first.named_parameters();
  for (const auto& [i, power] : {std::pair<std::int64_t, double>{0, 0.7}, {1, 2.0}})
    for (std::int64_t c = 0; c < 8; ++c) {
      const auto name = "rwkv4.h." + std::to_string(i) + ".mixer.";
      const auto at = static_cast<double>(c), above = i == 0 ? 1 : 0.5;
      const auto check = [&](const char* part, std::int64_t place, double want) {
        DOCTEST_CHECK(of[name + part][place].item<double>() == doctest::Approx(want).epsilon(1e-5));
      };
      check("decay", c, -5 + 8 * std::pow(at / 7, power));
      check("bonus", c, std::log(0.3) + 0.5 * ((c + 1) % 3 - 1));
      check("mix", c, std::pow(at / 8, above));
      check("mix", 8 + c, std::pow(at / 8, above) + (i == 0 ? 0 : 0.3));
      check("mix", 16 + c, std::pow(at / 8, above / 2));
    }
  const auto model = properties::strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  DOCTEST_CHECK(state.bytes() == 8 * 2 * 5 * 8);
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == 2 * model->state_bytes(52));
}
