// The fused recurrence, compared with its loop; SRU++, compared with its formulas, written out
// token by token.

#include "nn/arch/srupp.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "nn/layers/layer_memory.h"
#include "plain_transformer.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::gap;
using properties::Ids;
using properties::random_ids;
using properties::strong_model;
using torch::Tensor;

struct SruScan {
  Tensor gates, x, start;
  nn::SruWeights weights;
  std::vector<Tensor> leaves() const {
    return {gates, x, start, weights.forget, weights.highway, weights.forget_bias,
        weights.highway_bias};
  }
};

SruScan random_scan(std::int64_t rows, std::int64_t steps, std::int64_t d, torch::ScalarType type) {
  torch::manual_seed(3);
  const auto leaf = [&](torch::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kFloat64).to(type).set_requires_grad(true);
  };
  return {leaf({rows, steps, 3 * d}), leaf({rows, steps, d}), leaf({rows, d}),
      {leaf({d}), leaf({d}), leaf({d}), leaf({d})}};
}

using ScanFunction = decltype(&nn::sru_scan);

// Returns h up to each row's last step, the last cells, then all gradients.
std::vector<Tensor> results(
    ScanFunction scan, const SruScan& in, const Tensor& dropout, const Tensor& steps) {
  for (const auto& leaf : in.leaves()) leaf.mutable_grad() = Tensor();
  auto out = scan(in.gates, in.x, in.start, in.weights, dropout, steps);
  if (steps.defined()) {
    const auto on = torch::arange(in.x.size(1)).unsqueeze(0) < steps.unsqueeze(1);
    out.h = out.h * on.unsqueeze(2);
  }
  torch::manual_seed(4);
  ((out.h * torch::randn_like(out.h)).sum() + (out.cells * torch::randn_like(out.cells)).sum())
      .backward();
  std::vector<Tensor> all = {out.h.detach(), out.cells.detach()};
  for (const auto& leaf : in.leaves()) all.push_back(leaf.grad());
  return all;
}

Tensor times(const plain::Weights& w, const std::string& name, const Tensor& x) {
  return w.at(name + ".weight").mv(x);
}

// Runs the segments of one row in turn; returns f and g of all tokens.
plain::Output plain_srupp(
    const nn::ModelOptions& o, const plain::Weights& w, const std::vector<Ids>& segments) {
  const auto lengths = nn::parse_layer_memory(o.layer_memory.layer_memory, o.shape.layers);
  const auto d = o.shape.d_model, width = o.srupp.d_projection, heads = o.shape.heads;
  std::vector<std::vector<Tensor>> memory(static_cast<std::size_t>(o.shape.layers));
  std::vector<Tensor> cells(memory.size()), f, g;
  for (const auto& ids : segments) {
    std::vector<Tensor> x, z;
    for (const auto id : ids)
      x.push_back(plain::word_vector(o, w, "srupp.wte.", id) * std::sqrt(double(d)));
    for (std::int64_t layer = 0; layer < o.shape.layers; ++layer) {
      const auto name = "srupp.h." + std::to_string(layer) + ".";
      auto& past = memory[static_cast<std::size_t>(layer)];
      auto& c = cells[static_cast<std::size_t>(layer)];
      if (!c.defined()) c = torch::zeros({d}, x[0].options().requires_grad(false));
      auto inputs = past;
      inputs.insert(inputs.end(), x.begin(), x.end());
      const auto before = past.size();
      past.assign(
          inputs.begin() + std::max<std::int64_t>(
                               0, std::ssize(inputs) - lengths[static_cast<std::size_t>(layer)]),
          inputs.end());
      z.clear();
      for (std::size_t t = 0; t < x.size(); ++t) {
        auto token = times(w, name + "project", x[t]);
        if (w.count(name + "rezero")) {
          std::vector<Tensor> parts;
          for (std::int64_t head = 0; head < heads; ++head) {
            std::vector<Tensor> scores, values;
            const auto n = width / heads;
            for (std::size_t j = 0; j <= before + t; ++j) {
              const auto kv = times(w, name + "keys_values", times(w, name + "project", inputs[j]));
              scores.push_back(token.narrow(0, head * n, n).dot(kv.narrow(0, head * n, n)) /
                               std::sqrt(double(n)));
              values.push_back(kv.narrow(0, width + head * n, n));
            }
            parts.push_back(torch::stack(scores).softmax(0).matmul(torch::stack(values)));
          }
          token = token + w.at(name + "rezero") * torch::cat(parts);
        }
        token = torch::layer_norm(
            token, {width}, w.at(name + "norm.weight"), w.at(name + "norm.bias"), 1e-5);
        z.push_back(token);
        const auto u = times(w, name + "expand", token).chunk(3);
        const auto forget = torch::sigmoid(u[1] + w.at(name + "cell_forget") * c +
                                           w.at(name + "forget_bias") + o.srupp.forget_bias);
        const auto highway = torch::sigmoid(u[2] + w.at(name + "cell_highway") * c +
                                            w.at(name + "highway_bias") + o.srupp.highway_bias);
        c = forget * c + (1 - forget) * u[0];
        x[t] = x[t] + highway * (c - x[t]);
      }
    }
    f.insert(f.end(), x.begin(), x.end());
    g.insert(g.end(), z.begin(), z.end());
  }
  return {torch::stack(f), torch::stack(g)};
}

nn::ModelOptions srupp_options() {
  auto options = properties::small_options("srupp");
  options.srupp.d_projection = 4;
  return options;
}

}  // namespace

DOCTEST_TEST_CASE("the fused recurrence equals the plain loop, values and gradients") {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const double close = type == torch::kFloat64 ? 1e-10 : 1e-5;
    for (const std::int64_t d : {1, 37, 300}) {
      const auto in = random_scan(3, 9, d, type);
      const auto dropout = torch::rand({3, d}, torch::kFloat64).to(type);
      for (const auto& mask : {Tensor(), dropout})
        for (const auto& steps : {Tensor(), torch::tensor({9, 0, 4}, torch::kInt64)}) {
          const auto got = results(nn::sru_scan, in, mask, steps);
          const auto want = results(nn::sru_scan_plain, in, mask, steps);
          for (std::size_t i = 0; i < got.size(); ++i) {
            DOCTEST_CAPTURE(d);
            DOCTEST_CAPTURE(i);
            DOCTEST_CHECK(gap(got[i], want[i]) < 10 * close);
          }
        }
    }
  }
}

DOCTEST_TEST_CASE("srupp equals its formulas in values and gradients, with what it carries") {
  using Change = std::function<void(nn::ModelOptions&)>;
  const std::vector<Change> changes = {
      [](auto&) {},
      [](auto& o) { o.layer_memory.layer_memory = "3,6"; },
      [](auto& o) { o.layer_memory.layer_memory = "none"; },
      [](auto& o) { o.srupp.attention_every = 2, o.shape.heads = 1; },
      [](auto& o) { o.srupp.attention_every = 0; },
      [](auto& o) {
        o.srupp.attention_last = 1, o.srupp.forget_bias = 1, o.srupp.highway_bias = 0.5;
      },
  };
  const std::vector<Ids> segments = {random_ids(5, 1), random_ids(4, 2), random_ids(6, 3)};
  for (std::size_t change = 0; change < changes.size(); ++change) {
    DOCTEST_CAPTURE(change);
    auto options = srupp_options();
    changes[change](options);
    const auto model = strong_model(options);
    plain::Weights weights;
    for (const auto& [name, weight] : model->named_weights()) weights[name] = weight;
    nn::State state;
    std::vector<Tensor> f, g;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto hidden = model->architecture->forward(batch_of({segments[i]}, i == 0), &state);
      f.push_back(hidden.output[0]);
      g.push_back(hidden.key[0]);
    }
    const auto want = plain_srupp(options, weights, segments);
    properties::check_same(*model, {torch::cat(f), torch::cat(g)}, {want.output, want.key}, 1e-10);
  }
}

DOCTEST_TEST_CASE("srupp's dropout acts in training alone; attention starts at nothing") {
  auto options = srupp_options();
  options.shape.dropout = 0.4;
  torch::manual_seed(1);
  nn::Model model(options, properties::kVocabulary);
  const auto batch = batch_of({random_ids(6, 1)});
  const auto run = [&] { return model.architecture->forward(batch, nullptr).output; };
  model.train();
  DOCTEST_CHECK((run() - run()).abs().max().item<double>() > 0);
  model.eval();
  const auto first = run();
  DOCTEST_CHECK(gap(first, run()) == 0.0);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : model.named_weights())
    if (name.find("keys_values") != std::string::npos) Tensor(weight).fill_(3);
  DOCTEST_CHECK(gap(first, run()) == 0.0);  // rezero
}

DOCTEST_TEST_CASE("srupp carries cells and the inputs of the layers that attend, no more") {
  const torch::NoGradGuard no_grad;
  auto options = srupp_options();
  options.shape.layers = 4;
  options.srupp.attention_every = 2;
  options.layer_memory.layer_memory = "6";
  const auto model = strong_model(options);
  nn::State state;
  for (int i = 0; i < 3; ++i)
    model->architecture->forward(batch_of({random_ids(5, 1)}, i == 0), &state);
  DOCTEST_CHECK(state.bytes() == (4 * 8 + 2 * 6 * 8 + 1) * 8);
  DOCTEST_CHECK(state.tensors.count("h.1.memory") == 1);
  DOCTEST_CHECK(state.tensors.count("h.3.memory") == 1);
  model->architecture->set_reach({"9", -1, "on"});
  model->architecture->forward(batch_of({random_ids(5, 1)}, false), &state);
  DOCTEST_CHECK(state.tensors.at("h.3.memory").size(1) == 9);
}

DOCTEST_TEST_CASE("srupp refuses bad options by name") {
  const auto refusal = [](auto change) -> std::string {
    auto options = srupp_options();
    change(options);
    return properties::refusal(options);
  };
  DOCTEST_CHECK(refusal([](auto& o) { o.shape.heads = 3; }).find("heads") == 0);
  DOCTEST_CHECK(refusal([](auto& o) { o.srupp.attention_last = 3; }).find("attention-last") == 0);
  DOCTEST_CHECK(
      refusal([](auto& o) { o.srupp.attention_every = -1; }).find("attention-every") == 0);
}
