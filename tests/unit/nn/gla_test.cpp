// Gated linear attention: the fused recurrence compared with its loop, the model with its formulas
// written out token by token.

#include "nn/arch/gla.h"

#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

#include "core/error.h"
#include "nn/ops/gla_scan.h"
#include "plain_states.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::gap;
using properties::random_ids;
using properties::strong_model;
using torch::Tensor;

// Returns o, the last state, then the gradients of q, k, log_decay, v and the first state.
std::vector<Tensor> results(nn::GlaOutput (*scan)(const nn::GlaInput&), torch::ScalarType type,
    std::int64_t steps, std::int64_t d_key, std::int64_t d_value) {
  torch::manual_seed(3);
  const auto leaf = [&](torch::IntArrayRef sizes) {
    return torch::randn(sizes, torch::kFloat64).to(type).set_requires_grad(true);
  };
  const nn::GlaInput in{leaf({2, steps, 3, d_key}), leaf({2, steps, 3, d_key}),
      (-0.3 * torch::rand({2, steps, 3, d_key}, torch::kFloat64)).to(type).set_requires_grad(true),
      leaf({2, steps, 3, d_value}), leaf({2, 3, d_key, d_value})};
  const auto out = scan(in);
  torch::manual_seed(4);
  const auto direction = [](const Tensor& like) {
    return torch::randn(like.sizes(), torch::kFloat64).to(like.scalar_type());
  };
  ((out.o * direction(out.o)).sum() + (out.state * direction(out.state)).sum()).backward();
  return {out.o.detach(), out.state.detach(), in.q.grad(), in.k.grad(), in.log_decay.grad(),
      in.v.grad(), in.start.grad()};
}

Tensor matrix(const plain::Weights& w, const std::string& name, const Tensor& x) {
  const auto y = w.at(name + ".weight").mv(x);
  return w.count(name + ".bias") ? y + w.at(name + ".bias") : y;
}

Tensor norm(const plain::Weights& w, const std::string& name, const Tensor& x) {
  return torch::layer_norm(x, {x.size(0)}, w.at(name + ".weight"),
      w.count(name + ".bias") ? w.at(name + ".bias") : Tensor(), 1e-5);
}

Tensor root_norm(const plain::Weights& w, const std::string& name, const Tensor& x) {
  return x / (x.square().mean() + 1e-5).sqrt() * w.at(name + ".weight");
}

// A layer's mixer by its formulas, token by token.
class PlainMixer {
 public:
  PlainMixer(const nn::ModelOptions& o, const plain::Weights& w, const std::string& name)
      : o_(o), w_(w), name_(name + "mixer."), heads_(o.shape.heads), d_(o.shape.d_model) {
    states_.assign(static_cast<std::size_t>(heads_),
        torch::zeros({key_width(), d_ / heads_}, torch::kFloat64));
    for (std::int64_t head = 0; head < heads_; ++head)
      memories_.emplace_back(o.state_memory, w, name_ + "memory.", head, heads_);
  }

  Tensor next(const Tensor& in) {
    const auto all = matrix(w_, name_ + "c_in", in);
    auto qkv = all.narrow(0, 0, 2 * d_);
    const auto r = all.narrow(0, 2 * d_, d_);
    if (o_.gla.update == "delta") qkv = convolved(qkv);
    std::vector<Tensor> parts;
    for (std::int64_t head = 0; head < heads_; ++head) {
      const auto q = qkv.narrow(0, head * key_width(), key_width()),
                 k = qkv.narrow(0, d_ / 2 + head * key_width(), key_width()),
                 v = qkv.narrow(0, d_ + head * d_ / heads_, d_ / heads_);
      if (o_.gla.update == "delta")
        parts.push_back(root_norm(w_, name_ + "norm", delta(in, head, q, k, v)));
      else parts.push_back(norm(w_, name_ + "norm", sum(in, head, q, k, v)));
    }
    ++place_;
    return matrix(w_, name_ + "c_proj", torch::cat(parts) * r * torch::sigmoid(r));
  }

 private:
  std::int64_t key_width() const { return d_ / 2 / heads_; }

  Tensor sum(
      const Tensor& in, std::int64_t head, const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto root = std::sqrt(static_cast<double>(key_width()));
    if (o_.gla.decay == "fixed" && o_.state_memory.kind != "none") {
      const double gamma = 1 - std::pow(2.0, -5.0 - static_cast<double>(head));
      return stepped(
                 in, head, [&](const Tensor& s) { return gamma * s; }, torch::outer(turned(k), v))
                 .t()
                 .matmul(turned(q)) /
             root;
    }
    if (o_.gla.decay == "fixed") return retained(head, turned(q), turned(k), v) / root;
    auto decay = torch::ones({key_width()}, torch::kFloat64);
    if (o_.gla.decay == "gated") {
      const auto gate = matrix(w_, name_ + "gate_up", matrix(w_, name_ + "gate_down", in));
      decay = torch::sigmoid(gate).pow(1.0 / 16).narrow(0, head * key_width(), key_width());
    }
    const auto s = stepped(
        in, head, [&](const Tensor& s) { return torch::diag(decay).matmul(s); },
        torch::outer(k, v));
    return s.t().matmul(q) / root;
  }

  // RetNet in its parallel form: the head's tokens so far, each by itself.
  Tensor retained(std::int64_t head, const Tensor& q, const Tensor& k, const Tensor& v) {
    past_.push_back({head, place_, k, v});
    const double gamma = 1 - std::pow(2.0, -5.0 - static_cast<double>(head));
    auto out = torch::zeros_like(v);
    for (const auto& token : past_)
      if (token.head == head)
        out = out +
              std::pow(gamma, static_cast<double>(place_ - token.place)) * q.dot(token.k) * token.v;
    return out;
  }

  Tensor turned(const Tensor& x) const {  // pairs (i, i + half)
    const auto half = x.size(0) / 2;
    std::vector<Tensor> first, second;
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(place_) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(x.size(0)));
      first.push_back(x[i] * std::cos(angle) - x[i + half] * std::sin(angle));
      second.push_back(x[i] * std::sin(angle) + x[i + half] * std::cos(angle));
    }
    first.insert(first.end(), second.begin(), second.end());
    return torch::stack(first);
  }

  Tensor convolved(const Tensor& qkv) {
    inputs_.push_back(qkv);
    auto y = qkv;
    if (w_.count(name_ + "convolution.weight")) {
      const auto& weight = w_.at(name_ + "convolution.weight");
      const auto taps = weight.size(1), seen = std::ssize(inputs_);
      y = torch::zeros_like(qkv);
      for (std::int64_t back = 0; back < taps && back < seen; ++back)
        y = y +
            weight.select(1, taps - 1 - back) * inputs_[static_cast<std::size_t>(seen - 1 - back)];
    }
    return y * torch::sigmoid(y);
  }

  Tensor delta(
      const Tensor& in, std::int64_t head, const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto unit = [](const Tensor& x) { return x / (x.dot(x) + 1e-6).sqrt(); };
    const auto gates = matrix(w_, name_ + "gates", in);
    const auto beta = torch::sigmoid(gates[head]), one = unit(k);
    auto decay = torch::ones({}, torch::kFloat64);
    if (o_.gla.decay == "gated")
      decay = torch::exp(
          -w_.at(name_ + "a_log")[head].exp() *
          torch::log1p(torch::exp(gates[heads_ + head] + w_.at(name_ + "a_bias")[head])));
    const auto change =
        decay * (torch::eye(key_width(), torch::kFloat64) - beta * torch::outer(one, one));
    const auto s = stepped(
        in, head, [&](const Tensor& s) { return change.matmul(s); }, beta * torch::outer(one, v));
    return s.t().matmul(unit(q));
  }

  // Takes a head's step, and returns the matrix that is read.
  template <class Moved>
  Tensor stepped(const Tensor& in, std::int64_t head, const Moved& moved, const Tensor& added) {
    const auto i = static_cast<std::size_t>(head);
    if (o_.state_memory.kind != "none") return memories_[i].next(in, moved, added);
    return states_[i] = moved(states_[i]) + added;
  }

  struct Token {
    std::int64_t head, place;
    Tensor k, v;
  };
  const nn::ModelOptions& o_;
  const plain::Weights& w_;
  std::string name_;
  std::int64_t heads_, d_, place_ = 0;
  std::vector<Tensor> states_, inputs_;
  std::vector<Token> past_;
  std::vector<plain::States> memories_;  // of the heads
};

plain::Output plain_gla(
    const nn::ModelOptions& o, const plain::Weights& w, const properties::Ids& ids) {
  std::vector<PlainMixer> mixers;
  for (std::int64_t layer = 0; layer < o.shape.layers; ++layer)
    mixers.emplace_back(o, w, "gla.h." + std::to_string(layer) + ".");
  std::vector<Tensor> f, g;
  for (const auto id : ids) {
    auto x = plain::word_vector(o, w, "gla.wte.", id) * std::sqrt(double(o.shape.d_model));
    Tensor fed;
    for (std::size_t layer = 0; layer < mixers.size(); ++layer) {
      const auto name = "gla.h." + std::to_string(layer) + ".";
      x = x + mixers[layer].next(norm(w, name + "ln_1", x));
      fed = norm(w, name + "ln_2", x);
      x = x +
          matrix(w, name + "mlp.c_proj", torch::gelu(matrix(w, name + "mlp.c_fc", fed), "tanh"));
    }
    f.push_back(norm(w, "gla.ln_f", x));
    g.push_back(fed);
  }
  return {torch::stack(f), torch::stack(g)};
}

}  // namespace

DOCTEST_TEST_CASE("gla's fused recurrence equals the plain loop, values and gradients") {
  for (const auto type : {torch::kFloat64, torch::kFloat32})
    for (const auto& [steps, d_key, d_value] :
        {std::tuple{1, 1, 1}, {9, 3, 5}, {40, 8, 16}, {300, 4, 8}}) {
      const auto got = results(nn::gla_scan, type, steps, d_key, d_value);
      const auto want = results(nn::gla_scan_plain, type, steps, d_key, d_value);
      for (std::size_t i = 0; i < got.size(); ++i) {
        DOCTEST_CAPTURE(steps);
        DOCTEST_CAPTURE(i);
        DOCTEST_CHECK(gap(got[i], want[i]) < (type == torch::kFloat64 ? 1e-10 : 3e-5));
      }
    }
}

DOCTEST_TEST_CASE("gla equals its formulas in values and gradients, over calls of any length") {
  const std::vector<nn::GlaOptions> kinds = {{"sum", "gated", 4}, {"sum", "fixed", 4},
      {"sum", "none", 4}, {"delta", "gated", 4}, {"delta", "none", 3}, {"delta", "gated", 1}};
  for (const auto& kind : kinds) {
    DOCTEST_CAPTURE(kind.update);
    DOCTEST_CAPTURE(kind.decay);
    auto options = properties::small_options("gla");
    options.gla = kind;
    const auto model = strong_model(options);
    plain::Weights weights;
    for (const auto& [name, weight] : model->named_weights()) weights[name] = weight;
    const auto ids = random_ids(12, 1);
    nn::State state;
    std::vector<Tensor> f, g;
    std::size_t at = 0;
    for (const std::size_t n : {5, 1, 6}) {
      const properties::Ids part(ids.begin() + static_cast<std::ptrdiff_t>(at),
          ids.begin() + static_cast<std::ptrdiff_t>(at + n));
      const auto hidden = model->architecture->forward(batch_of({part}, at == 0), &state);
      f.push_back(hidden.output[0]);
      g.push_back(hidden.key[0]);
      at += n;
    }
    const auto want = plain_gla(options, weights, ids);
    properties::check_same(*model, {torch::cat(f), torch::cat(g)}, {want.output, want.key}, 1e-10);
  }
}

DOCTEST_TEST_CASE("gla with a memory of states equals its formulas, in rows at different tokens") {
  const std::vector<nn::GlaOptions> kinds = {{"sum", "gated", 4}, {"sum", "fixed", 4},
      {"sum", "none", 4}, {"delta", "gated", 4}, {"delta", "none", 1}};
  const std::vector<nn::StateMemoryOptions> memories = {
      {"segments", 4, 3, 2}, {"segments", 1, 50, 2}, {"fenwick", 1, 1, 12}, {"fenwick", 1, 1, 4}};
  for (const auto& kind : kinds)
    for (const auto& memory : memories) {
      DOCTEST_CAPTURE(kind.update + " " + kind.decay + " " + memory.kind);
      auto options = properties::small_options("gla");
      options.gla = kind, options.state_memory = memory;
      const auto model = strong_model(options);
      plain::Weights weights;
      for (const auto& [name, weight] : model->named_weights()) weights[name] = weight;
      // The first row begins three tokens later than the second, which ends three tokens earlier.
      const auto first = random_ids(45, 1), second = random_ids(45, 2);
      std::vector<properties::Ids> rows(2);
      rows[0].assign(3, properties::kPad);
      rows[0].insert(rows[0].end(), first.begin(), first.end());
      rows[1] = second;
      rows[1].resize(48, properties::kPad);
      nn::State state;
      std::vector<Tensor> f, g;
      std::ptrdiff_t at = 0;
      for (const std::ptrdiff_t n : {2, 1, 40, 1, 4}) {
        std::vector<properties::Ids> part;
        for (const auto& row : rows) part.emplace_back(row.begin() + at, row.begin() + at + n);
        const auto hidden = model->architecture->forward(batch_of(part, at == 0), &state);
        f.push_back(hidden.output);
        g.push_back(hidden.key);
        at += n;
      }
      const auto all = torch::cat(f, 1), keys = torch::cat(g, 1);
      const auto one = plain_gla(options, weights, first),
                 two = plain_gla(options, weights, second);
      properties::check_same(*model,
          {torch::cat({all[0].narrow(0, 3, 45), all[1].narrow(0, 0, 45)}),
              torch::cat({keys[0].narrow(0, 3, 45), keys[1].narrow(0, 0, 45)})},
          {torch::cat({one.output, two.output}), torch::cat({one.key, two.key})}, 1e-10);
    }
}

DOCTEST_TEST_CASE("what a gla adds and what it keeps have to go together") {
  auto options = properties::small_options("gla");
  options.gla = {"delta", "fixed", 4};
  DOCTEST_CHECK(
      properties::refusal(options) ==
      "gla-decay: fixed (RetNet) requires gla-update sum; with delta, give gated or none");
  options.gla.update = "sum";
  options.shape.heads = 4;
  DOCTEST_CHECK(
      properties::refusal(options) ==
      "heads: a fixed decay (RetNet) needs keys of even width, not 1: d-model / 2 / heads");
}

DOCTEST_TEST_CASE("gla carries a State of constant size and refuses heads that do not fit") {
  auto options = properties::small_options("gla");
  const auto model = strong_model(options);
  DOCTEST_CHECK(model->architecture->carry() == nn::Carry::constant);
  const torch::NoGradGuard no_grad;
  nn::State state;
  model->architecture->forward(batch_of({random_ids(2, 1)}), &state);
  const auto bytes = state.bytes();
  DOCTEST_CHECK(bytes == 2 * (2 * 2 * 4) * 8);
  model->architecture->forward(batch_of({random_ids(50, 1)}, false), &state);
  DOCTEST_CHECK(state.bytes() == bytes);
  options.shape.heads = 8;
  DOCTEST_CHECK_THROWS_WITH_AS(
      nn::Model(options, 13), "heads: twice 8 does not divide d-model 8", core::Error);
}
