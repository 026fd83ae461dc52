// The encoder-decoder, compared with a version written out token by token and head by head; its
// sources in State; padding of the source.

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/error.h"
#include "properties.h"

namespace {

using properties::batch_of;
using properties::Ids;
using properties::random_ids;
using properties::strong_model;
using torch::Tensor;
using Rows = std::vector<Tensor>;  // a vector (d) per token

constexpr double kAlike = 1e-10;

/// The definition for one sentence pair, without padding, in evaluation.
struct PlainPair {
  nn::ModelOptions options;
  std::map<std::string, Tensor> weights;

  explicit PlainPair(const nn::Model& model) : options(model.options) {
    const std::string prefix = "encoder-decoder.";
    for (const auto& [name, weight] : model.named_weights())
      weights[name.substr(prefix.size())] = weight;
  }
  Tensor matrix(const std::string& name, const Tensor& x) const {
    return weights.at(name + ".weight").mv(x) + weights.at(name + ".bias");
  }
  Tensor norm(const std::string& name, const Tensor& x) const {
    const auto centred = x - x.mean();
    return centred / (centred.square().mean() + options.transformer.norm_epsilon).sqrt() *
               weights.at(name + ".weight") +
           weights.at(name + ".bias");
  }
  /// Token t of `asking` sees the first seen(t) tokens of `asked`.
  Rows attend(const Rows& q, const Rows& k, const Rows& v,
      const std::function<std::size_t(std::size_t)>& seen) const {
    const auto width = options.shape.d_model / options.shape.heads;
    Rows out;
    for (std::size_t t = 0; t < q.size(); ++t) {
      Rows parts;
      for (std::int64_t head = 0; head < options.shape.heads; ++head) {
        const auto part = [&](const Tensor& x) { return x.narrow(0, head * width, width); };
        Rows scores;
        for (std::size_t s = 0; s < seen(t); ++s)
          scores.push_back(part(q[t]).dot(part(k[s])) / std::sqrt(static_cast<double>(width)));
        const auto share = torch::stack(scores).softmax(0);
        auto sum = torch::zeros_like(part(v[0]));
        for (std::size_t s = 0; s < seen(t); ++s)
          sum = sum + share[static_cast<std::int64_t>(s)] * part(v[s]);
        parts.push_back(sum);
      }
      out.push_back(torch::cat(parts));
    }
    return out;
  }
  Rows self(const std::string& name, const Rows& x, bool causal) const {
    Rows q, k, v;
    for (const auto& token : x) {
      const auto all = matrix(name + ".c_attn", token).chunk(3);
      q.push_back(all[0]), k.push_back(all[1]), v.push_back(all[2]);
    }
    return projected(name, attend(q, k, v, [&](auto t) { return causal ? t + 1 : x.size(); }));
  }
  Rows cross(const std::string& name, const Rows& x, const Rows& memory) const {
    Rows q, k, v;
    for (const auto& token : x) q.push_back(matrix(name + ".c_q", token));
    for (const auto& token : memory) {
      const auto both = matrix(name + ".c_kv", token).chunk(2);
      k.push_back(both[0]), v.push_back(both[1]);
    }
    return projected(name, attend(q, k, v, [&](auto) { return memory.size(); }));
  }
  Rows projected(const std::string& name, Rows x) const {
    for (auto& token : x) token = matrix(name + ".c_proj", token);
    return x;
  }
  /// Returns x plus inner(x), with the norm `name` before or after.
  Rows residual(
      const std::string& name, const Rows& x, const std::function<Rows(const Rows&)>& inner) const {
    const bool pre = options.transformer.norm == "pre";
    Rows read = x;
    if (pre)
      for (auto& token : read) token = norm(name, token);
    Rows out = inner(read);
    for (std::size_t t = 0; t < x.size(); ++t)
      out[t] = pre ? x[t] + out[t] : norm(name, x[t] + out[t]);
    return out;
  }
  Rows mlp(const std::string& name, const Rows& x) const {
    Rows out;
    for (const auto& token : x)
      out.push_back(matrix(name + ".c_proj", matrix(name + ".c_fc", token).clamp_min(0)));
    return out;
  }
  Rows embed(const std::string& prefix, const Ids& ids) const {
    Rows x;
    for (std::size_t t = 0; t < ids.size(); ++t)
      x.push_back(
          weights.at("wte.weight")[ids[t]] * std::sqrt(static_cast<double>(options.shape.d_model)) +
          weights.at(prefix + "wpe.weight")[static_cast<std::int64_t>(t)]);
    return x;
  }
  Rows encode(const Ids& source) const {
    Rows x = embed("encoder.", source);
    for (std::int64_t i = 0; i < options.shape.layers; ++i) {
      const auto name = "encoder.h." + std::to_string(i);
      x = residual(
          name + ".ln_1", x, [&](const Rows& r) { return self(name + ".attn", r, false); });
      x = residual(name + ".ln_2", x, [&](const Rows& r) { return mlp(name + ".mlp", r); });
    }
    return last(x, "encoder.ln_f");
  }
  Rows last(Rows x, const std::string& name) const {
    if (options.transformer.norm == "pre")
      for (auto& token : x) token = norm(name, token);
    return x;
  }
  nn::Hidden decode(const Ids& source, const Ids& ids) const {
    const Rows memory = encode(source);
    Rows x = embed("", ids), key;
    for (std::int64_t i = 0; i < options.shape.layers; ++i) {
      const auto name = "h." + std::to_string(i);
      x = residual(name + ".ln_1", x, [&](const Rows& r) { return self(name + ".attn", r, true); });
      x = residual(
          name + ".ln_x", x, [&](const Rows& r) { return cross(name + ".cross", r, memory); });
      x = residual(name + ".ln_2", x, [&](const Rows& r) { return mlp(name + ".mlp", key = r); });
    }
    const auto f = torch::stack(last(x, "ln_f")).unsqueeze(0);
    return {f, options.shape.memory_key == "output" ? f : torch::stack(key).unsqueeze(0)};
  }
};

nn::ModelOptions options_of(const std::string& norm = "pre", const std::string& key = "output") {
  auto options = properties::small_options("encoder-decoder");
  options.transformer.norm = norm;
  options.transformer.activation = "relu";
  options.shape.memory_key = key;
  return options;
}

nn::Batch with_source(nn::Batch batch, const std::vector<Ids>& sources) {
  batch.source = batch_of(sources).inputs;  // padding is -1 there too
  return batch;
}

std::vector<Tensor> gradients(nn::Model& model, const nn::Hidden& hidden) {
  model.zero_grad();
  torch::manual_seed(9);
  ((hidden.output * torch::randn_like(hidden.output)).sum() +
      (hidden.key * torch::randn_like(hidden.key)).sum())
      .backward();
  std::vector<Tensor> all;
  for (const auto& [name, weight] : model.named_weights())
    all.push_back(weight.grad().defined() ? weight.grad().clone() : torch::zeros_like(weight));
  return all;
}

void check_same(nn::Model& model, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    DOCTEST_CAPTURE(model.named_weights()[i].first);
    DOCTEST_CHECK((a[i] - b[i]).abs().max().item<double>() < 1e-8);
  }
}

}  // namespace

DOCTEST_TEST_CASE("an encoder-decoder is what its definition says, values and gradients") {
  for (const std::string norm : {"pre", "post"}) {
    for (const std::string key : {"output", "last-ffn-input"}) {
      const auto model = strong_model(options_of(norm, key));
      const auto source = random_ids(5, 30), ids = random_ids(6, 31);
      const auto plain = PlainPair(*model).decode(source, ids);
      const auto hidden =
          model->architecture->forward(with_source(batch_of({ids}), {source}), nullptr);
      DOCTEST_CHECK(properties::difference(hidden, 0, 0, plain, 0, 0, 6) < kAlike);
      const auto expected = gradients(*model, plain);
      check_same(*model, gradients(*model, hidden), expected);
      model->to(torch::kFloat32);
      const auto narrow =
          model->architecture->forward(with_source(batch_of({ids}), {source}), nullptr);
      DOCTEST_CHECK((narrow.output - plain.output).abs().max().item<double>() < 1e-4);
    }
  }
}

DOCTEST_TEST_CASE("padding on either side changes nothing, neither values nor gradients") {
  const auto p = properties::kPad;
  for (const std::string positions : {"learned", "sinusoidal", "rope", "alibi", "none"}) {
    DOCTEST_CAPTURE(positions);
    auto options = options_of();
    options.transformer.positions = positions;
    const auto model = strong_model(options);
    const Ids source = random_ids(3, 40), ids = random_ids(4, 41);
    const auto alone =
        model->architecture->forward(with_source(batch_of({ids}), {source}), nullptr);
    const Ids padded = {p, source[0], p, source[1], source[2], p, p},
              target = {p, ids[0], ids[1], p, ids[2], ids[3]};
    const auto batch =
        with_source(batch_of({random_ids(6, 42), target}), {random_ids(7, 43), padded});
    const auto both = model->architecture->forward(batch, nullptr);
    const auto at = torch::tensor({1, 2, 4, 5});
    const nn::Hidden there = {both.output[1].index_select(0, at).unsqueeze(0),
        both.key[1].index_select(0, at).unsqueeze(0)};
    DOCTEST_CHECK(properties::difference(there, 0, 0, alone, 0, 0, 4) < kAlike);
    const auto expected = gradients(*model, alone);
    check_same(*model, gradients(*model, there), expected);
  }
}

DOCTEST_TEST_CASE("a State keeps the sources of its rows: selected, kept or renewed") {
  const torch::NoGradGuard no_grad;
  const auto model = strong_model(options_of());
  auto& net = *model->architecture;
  const Ids a = random_ids(3, 50), b = random_ids(5, 51), c = random_ids(7, 52);
  const Ids x = random_ids(4, 53), y = random_ids(4, 54);
  const auto alone = [&](const Ids& source, const Ids& ids) {
    return net.forward(with_source(batch_of({ids}), {source}), nullptr);
  };
  const auto p = properties::kPad;
  nn::State state;
  const auto step = [&](const Ids& rows, bool fresh) {
    std::vector<Ids> ids;
    for (const auto id : rows) ids.push_back({id});
    return batch_of(ids, fresh);
  };
  net.forward(with_source(step({x[0], y[0]}, true), {{a[0], a[1], a[2], p, p}, b}), &state);
  for (std::int64_t t = 1; t < 4; ++t) {
    const auto hidden = net.forward(step({x[t], y[t]}, false), &state);
    DOCTEST_CHECK(properties::difference(hidden, 0, 0, alone(a, x), 0, t, 1) < kAlike);
    DOCTEST_CHECK(properties::difference(hidden, 1, 0, alone(b, y), 0, t, 1) < kAlike);
  }
  state.select(torch::tensor({1, 1, 0}, torch::kInt64));
  // Row 1 starts afresh with a longer source; the other rows continue with theirs.
  auto batch = with_source(step({y[0], x[0], y[0]}, false), {{p, p, p, p, p, p, p}, c, c});
  batch.fresh[1] = true;
  const auto hidden = net.forward(batch, &state);
  Ids yy = y, xy = x;
  yy.push_back(y[0]), xy.push_back(y[0]);
  DOCTEST_CHECK(properties::difference(hidden, 0, 0, alone(b, yy), 0, 4, 1) < kAlike);
  DOCTEST_CHECK(properties::difference(hidden, 1, 0, alone(c, {x[0]}), 0, 0, 1) < kAlike);
  DOCTEST_CHECK(properties::difference(hidden, 2, 0, alone(a, xy), 0, 4, 1) < kAlike);
  // A fresh row without a source has none, not the previous one.
  auto bare = step({y[0], x[0], y[0]}, true);
  const auto without = net.forward(bare, &state);
  const auto never = net.forward(batch_of({{y[0]}}), nullptr);
  DOCTEST_CHECK(properties::difference(without, 0, 0, never, 0, 0, 1) < kAlike);
  DOCTEST_CHECK(properties::difference(without, 0, 0, alone(b, y), 0, 0, 1) > 1e-6);
}

DOCTEST_TEST_CASE("a source longer than the learned positions is refused") {
  const auto model = strong_model(options_of());
  const auto batch = with_source(batch_of({{1}}), {random_ids(33, 60)});
  DOCTEST_CHECK_THROWS_AS(model->architecture->forward(batch, nullptr), core::Error);
}

// Both use the fused block: computed by modules, some last bits would differ.
DOCTEST_TEST_CASE("a decoder without a source is the transformer of its weights, to the last bit") {
  torch::manual_seed(13);
  auto options = options_of("pre", "last-ffn-input");
  options.shape.d_model = 64, options.shape.d_ff = 128;
  const nn::Model reads(options, properties::kVocabulary);
  options.arch = "transformer";
  const nn::Model plain(options, properties::kVocabulary);
  const torch::NoGradGuard no_grad;
  auto weights = reads.architecture->named_parameters();
  for (auto& item : plain.architecture->named_parameters()) item.value().copy_(weights[item.key()]);
  std::vector<Ids> rows;
  for (std::uint64_t row = 0; row < 16; ++row) rows.push_back(random_ids(30, 70 + row));
  const auto a = reads.architecture->forward(batch_of(rows), nullptr),
             b = plain.architecture->forward(batch_of(rows), nullptr);
  DOCTEST_CHECK(torch::equal(a.output, b.output));
  DOCTEST_CHECK(torch::equal(a.key, b.key));
}
