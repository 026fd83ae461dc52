#include "properties.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "core/error.h"
#include "nn/layers/layers.h"

namespace properties {
namespace {

constexpr double kClose = 1e-10;

// Tensors here are tiny: on a busy machine a second thread only waits for the first.
[[maybe_unused]] const bool one_thread = (at::set_num_threads(1), true);

/// Runs `rows` through one State in calls that end at `cuts` and at the end.
nn::Hidden in_calls(nn::Model& model, const std::vector<Ids>& rows,
    const std::vector<std::int64_t>& cuts, nn::State& state) {
  std::vector<torch::Tensor> f, g;
  std::int64_t begin = 0;
  auto ends = cuts;
  ends.push_back(static_cast<std::int64_t>(rows[0].size()));
  for (const auto end : ends) {
    std::vector<Ids> part;
    for (const auto& row : rows) part.emplace_back(row.begin() + begin, row.begin() + end);
    const auto hidden = model.architecture->forward(batch_of(part, begin == 0), &state);
    f.push_back(hidden.output);
    g.push_back(hidden.key);
    begin = end;
  }
  return {torch::cat(f, 1), torch::cat(g, 1)};
}

Ids without_padding(const Ids& row) {
  Ids real;
  std::copy_if(
      row.begin(), row.end(), std::back_inserter(real), [](auto id) { return id != kPad; });
  return real;
}

/// Checks that `hidden`'s row r agrees with the row's tokens alone and is finite at padding.
void check_row_alone(
    nn::Model& model, const nn::Hidden& hidden, const std::vector<Ids>& rows, std::int64_t r) {
  const auto real = without_padding(rows[r]);
  DOCTEST_CHECK(hidden.output[r].isfinite().all().item<bool>());
  DOCTEST_CHECK(hidden.key[r].isfinite().all().item<bool>());
  if (real.empty()) return;
  const auto alone = model.architecture->forward(batch_of({real}), nullptr);
  std::int64_t place = 0;
  for (std::size_t t = 0; t < rows[r].size(); ++t) {
    if (rows[r][t] == kPad) continue;
    DOCTEST_CAPTURE(t);
    DOCTEST_CHECK(
        difference(hidden, r, static_cast<std::int64_t>(t), alone, 0, place++, 1) < kClose);
  }
}

}  // namespace

nn::Batch batch_of(const std::vector<Ids>& rows, bool fresh) {
  const auto count = static_cast<std::int64_t>(rows.size()),
             steps = static_cast<std::int64_t>(rows[0].size());
  nn::Batch batch;
  batch.inputs = torch::zeros({count, steps}, torch::kInt64);
  auto inputs = batch.inputs.accessor<std::int64_t, 2>();
  for (std::int64_t r = 0; r < count; ++r)
    for (std::int64_t t = 0; t < steps; ++t) inputs[r][t] = rows[r][t];
  const auto padding = batch.inputs < 0;
  batch.targets = torch::zeros_like(batch.inputs);
  batch.weight = padding.logical_not().to(torch::kFloat32);
  batch.place.run =
      torch::arange(count).unsqueeze(1).expand({count, steps}).masked_fill(padding, -1);
  batch.place.segment = torch::zeros_like(batch.inputs);
  batch.place.position = torch::arange(steps).unsqueeze(0).expand({count, steps}).contiguous();
  batch.fresh = torch::full({count}, fresh, torch::kBool);
  return batch;
}

Ids random_ids(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Ids ids(n);
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % kVocabulary);
  return ids;
}

nn::ModelOptions small_options(const std::string& arch) {
  nn::ModelOptions options;
  options.arch = arch;
  options.shape.layers = 2;
  options.shape.d_model = 8;
  options.shape.heads = 2;
  options.shape.d_ff = 12;
  options.shape.dropout = 0;
  options.transformer.context = 32;
  options.mamba2.state = 5, options.mixers.state = 6, options.mixers.filter = 40;
  return options;
}

std::shared_ptr<nn::Model> strong_model(const nn::ModelOptions& options, std::uint64_t seed) {
  torch::manual_seed(seed);
  auto model = std::make_shared<nn::Model>(options, kVocabulary);
  const torch::NoGradGuard no_grad;
  for (auto& weight : model->parameters())
    weight.normal_(weight.dim() == 1 ? 0.5 : 0.0, weight.dim() == 1 ? 0.3 : 0.6);
  for (const auto& part : model->modules()) {  // some numbers mean little far from where they begin
    auto* const own = dynamic_cast<nn::OwnFirstValues*>(part.get());
    if (own == nullptr) continue;
    own->first_values();
    for (auto& weight : part->parameters(/*recurse=*/false))
      weight.mul_(torch::rand_like(weight) * 0.4 + 0.8);
  }
  model->to(torch::kFloat64);
  model->eval();
  return model;
}

torch::Tensor gradient_of(const torch::Tensor& weight) {
  const auto& gradient = weight.grad();
  if (!gradient.defined()) return torch::zeros_like(weight);
  return gradient.is_sparse() ? gradient.to_dense() : gradient.clone();
}

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs() / (1 + b.abs())).max().item<double>();
}

void check_same(nn::Model& model, const nn::Hidden& got, const nn::Hidden& want, double close) {
  DOCTEST_CHECK(gap(got.output, want.output) < close);
  DOCTEST_CHECK(gap(got.key, want.key) < close);
  const auto gradients = [&](const nn::Hidden& hidden) {
    model.zero_grad();
    torch::manual_seed(9);
    const auto direction = [](const torch::Tensor& like) {
      return torch::randn(like.sizes(), torch::kFloat64).to(like.scalar_type());
    };
    ((hidden.output * direction(hidden.output)).sum() + (hidden.key * direction(hidden.key)).sum())
        .backward();
    std::vector<torch::Tensor> all;
    for (const auto& [name, weight] : model.named_weights()) all.push_back(gradient_of(weight));
    return all;
  };
  const auto d_got = gradients(got), d_want = gradients(want);
  for (std::size_t i = 0; i < d_got.size(); ++i) {
    DOCTEST_CAPTURE(model.named_weights()[i].first);
    DOCTEST_CHECK(gap(d_got[i], d_want[i]) < 20 * close);
  }
}

std::int64_t check_against_loops(const nn::ModelOptions& options, const PlainModel& plain,
    std::int64_t steps, torch::ScalarType type, double close) {
  const auto model = strong_model(options), exact = strong_model(options);
  model->to(type);
  const auto ids = random_ids(steps, 5);
  const auto ours = model->architecture->forward(batch_of({random_ids(steps, 4), ids}), nullptr);
  const auto weights = exact->named_parameters();
  const auto theirs = plain(torch::tensor(ids), weights);
  DOCTEST_CHECK((ours.output[1] - theirs.output).abs().max().item<double>() < close);
  DOCTEST_CHECK((ours.key[1] - theirs.key).abs().max().item<double>() < close);
  torch::manual_seed(3);
  const auto to_f = torch::randn_like(theirs.output), to_g = torch::randn_like(theirs.key);
  (ours.output[1] * to_f.to(type) + ours.key[1] * to_g.to(type)).sum().backward();
  (theirs.output * to_f + theirs.key * to_g).sum().backward();
  std::int64_t compared = 0;
  for (const auto& item : model->named_parameters()) {
    if (!item.value().grad().defined()) continue;
    DOCTEST_CAPTURE(item.key());
    const auto expected = gradient_of(weights[item.key()]);
    const auto size = std::max(1.0, expected.abs().max().item<double>());
    DOCTEST_CHECK((gradient_of(item.value()) - expected).abs().max().item<double>() < close * size);
    ++compared;
  }
  return compared;
}

std::string refusal(const nn::ModelOptions& options) {
  try {
    const nn::Model model(options, kVocabulary);
  } catch (const core::Error& error) {
    DOCTEST_CHECK(error.code() == core::Code::bad_config);
    return error.what();
  }
  return "";
}

double difference(const nn::Hidden& a, std::int64_t a_row, std::int64_t a_begin,
    const nn::Hidden& b, std::int64_t b_row, std::int64_t b_begin, std::int64_t n) {
  const auto gap = [&](const torch::Tensor& x, const torch::Tensor& y) {
    return (x[a_row].narrow(0, a_begin, n) - y[b_row].narrow(0, b_begin, n))
        .abs()
        .max()
        .item<double>();
  };
  return n == 0 ? 0 : std::max(gap(a.output, b.output), gap(a.key, b.key));
}

void check_causality(nn::Model& model) {
  const torch::NoGradGuard no_grad;
  const auto ids = random_ids(7, 3);
  const auto before = model.architecture->forward(batch_of({ids}), nullptr);
  // An expert multiplies the tokens that chose it. MKL's products on AVX2 round a row by the number
  // of rows.
  const double most = model.options.transformer.experts.count > 0 ? 1e-13 : 0;
  DOCTEST_CHECK(before.output.sizes() == torch::IntArrayRef({1, 7, model.architecture->d_model()}));
  DOCTEST_CHECK(before.key.sizes() == torch::IntArrayRef({1, 7, model.architecture->d_key()}));
  for (std::int64_t t = 0; t < 7; ++t) {
    auto changed = ids;
    changed[t] = (ids[t] + 1) % kVocabulary;
    const auto after = model.architecture->forward(batch_of({changed}), nullptr);
    DOCTEST_CAPTURE(t);
    DOCTEST_CHECK(difference(before, 0, 0, after, 0, 0, t) <= most);
    for (auto later = t; later < 7; ++later)  // and every later token sees it
      DOCTEST_CHECK(difference(before, 0, later, after, 0, later, 1) > 1e-9);
  }
}

void check_streaming(nn::Model& model) {
  const std::vector<Ids> rows = {random_ids(9, 4), random_ids(9, 5), random_ids(9, 6)};
  for (const bool gradient : {false, true}) {
    const torch::AutoGradMode mode(gradient);
    const auto whole = model.architecture->forward(batch_of(rows), nullptr);
    std::vector<std::vector<std::int64_t>> all_cuts = {
        {}, {1, 2, 3, 4, 5, 6, 7, 8}, {4, 5}, {1, 7}};
    for (std::int64_t cut = 1; cut < 9; ++cut) all_cuts.push_back({cut});
    for (const auto& cuts : all_cuts) {
      nn::State state;
      const auto parts = in_calls(model, rows, cuts, state);
      for (std::int64_t r = 0; r < 3; ++r) {
        DOCTEST_CAPTURE(gradient);
        DOCTEST_CAPTURE(r);
        DOCTEST_CHECK(difference(whole, r, 0, parts, r, 0, 9) < kClose);
      }
      DOCTEST_CHECK(state.bytes() > 0);
    }
  }
}

void check_padding(nn::Model& model) {
  const torch::NoGradGuard no_grad;
  const auto p = kPad;
  // Left, right, in between, none, only padding.
  const std::vector<Ids> rows = {{p, p, p, 1, 2, 3, 4, 5}, {6, 7, 8, p, p, p, p, p},
      {p, 1, p, p, 9, 4, p, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {p, p, p, p, p, p, p, p},
      {p, p, p, p, p, p, p, 3}};
  const auto whole = model.architecture->forward(batch_of(rows), nullptr);
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(rows.size()); ++r) {
    DOCTEST_CAPTURE(r);
    check_row_alone(model, whole, rows, r);
  }
  const std::vector<std::vector<std::int64_t>> all_cuts = {{}, {3}, {5}, {1, 2, 3, 4, 5, 6, 7}};
  for (const auto& cuts : all_cuts) {
    nn::State state;
    const auto parts = in_calls(model, rows, cuts, state);
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(rows.size()); ++r) {
      DOCTEST_CAPTURE(cuts.size());
      DOCTEST_CAPTURE(r);
      check_row_alone(model, parts, rows, r);
    }
  }
}

void check_rows(nn::Model& model) {
  const torch::NoGradGuard no_grad;
  const Ids a = random_ids(8, 7), b = random_ids(8, 8), c = random_ids(4, 9);
  const auto first = [](const Ids& ids) { return Ids(ids.begin(), ids.begin() + 4); };
  const auto last = [](const Ids& ids) { return Ids(ids.begin() + 4, ids.end()); };
  const auto alone_a = model.architecture->forward(batch_of({a}), nullptr);
  const auto alone_b = model.architecture->forward(batch_of({b}), nullptr);
  const auto alone_c = model.architecture->forward(batch_of({c}), nullptr);

  nn::State state;
  model.architecture->forward(batch_of({first(a), first(b)}), &state);
  state.select(torch::tensor({1, 0, 1}, torch::kInt64));
  const auto chosen =
      model.architecture->forward(batch_of({last(b), last(a), last(b)}, false), &state);
  DOCTEST_CHECK(difference(chosen, 0, 0, alone_b, 0, 4, 4) < kClose);
  DOCTEST_CHECK(difference(chosen, 1, 0, alone_a, 0, 4, 4) < kClose);
  DOCTEST_CHECK(difference(chosen, 2, 0, alone_b, 0, 4, 4) < kClose);

  nn::State renewed;
  model.architecture->forward(batch_of({first(a), first(b)}), &renewed);
  auto batch = batch_of({c, last(b)}, false);
  batch.fresh[0] = true;
  const auto mixed = model.architecture->forward(batch, &renewed);
  DOCTEST_CHECK(difference(mixed, 0, 0, alone_c, 0, 0, 4) < kClose);
  DOCTEST_CHECK(difference(mixed, 1, 0, alone_b, 0, 4, 4) < kClose);

  for (int i = 0; i < 20; ++i) {  // rows that start afresh repeatedly need no more memory
    const auto again = model.architecture->forward(batch_of({c, first(a)}), &renewed);
    DOCTEST_CHECK(difference(again, 0, 0, alone_c, 0, 0, 4) < kClose);
    DOCTEST_CHECK(difference(again, 1, 0, alone_a, 0, 0, 4) < kClose);
  }
  const auto bytes = renewed.bytes();
  for (int i = 0; i < 20; ++i) model.architecture->forward(batch_of({c, first(a)}), &renewed);
  DOCTEST_CHECK(renewed.bytes() <= bytes);
}

void check_gradient_through_state(nn::Model& model) {
  const std::vector<Ids> rows = {random_ids(8, 10), random_ids(8, 11)};
  const auto gradients = [&](const std::vector<std::int64_t>& cuts) {
    model.zero_grad();
    nn::State state;
    const auto hidden = in_calls(model, rows, cuts, state);
    torch::manual_seed(5);
    const auto loss = (hidden.output * torch::randn_like(hidden.output)).sum() +
                      (hidden.key * torch::randn_like(hidden.key)).sum();
    loss.backward();
    std::vector<torch::Tensor> all;
    for (const auto& [name, weight] : model.named_weights()) all.push_back(gradient_of(weight));
    return all;
  };
  const auto whole = gradients({});
  for (const auto& cuts : std::vector<std::vector<std::int64_t>>{{4}, {1, 2, 5}}) {
    const auto parts = gradients(cuts);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      DOCTEST_CAPTURE(model.named_weights()[i].first);
      DOCTEST_CHECK((whole[i] - parts[i]).abs().max().item<double>() < kClose);
    }
  }
}

void check_padding_gradient(nn::Model& model) {
  const Ids ids = random_ids(5, 12);
  const Ids padded = {kPad, ids[0], kPad, ids[1], ids[2], ids[3], ids[4], kPad};
  const Ids places = {1, 3, 4, 5, 6};
  torch::manual_seed(6);
  const auto weights = torch::randn({5, model.architecture->d_model()}, torch::kFloat64);
  const auto gradients = [&](const nn::Batch& batch, const Ids& at) {
    model.zero_grad();
    const auto hidden = model.architecture->forward(batch, nullptr);
    (hidden.output[0].index_select(0, torch::tensor(at)) * weights).sum().backward();
    std::vector<torch::Tensor> all;
    for (const auto& [name, weight] : model.named_weights()) all.push_back(gradient_of(weight));
    return all;
  };
  const auto alone = gradients(batch_of({ids}), {0, 1, 2, 3, 4});
  const auto within = gradients(batch_of({padded}), places);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    DOCTEST_CAPTURE(model.named_weights()[i].first);
    DOCTEST_CHECK((alone[i] - within[i]).abs().max().item<double>() < kClose);
  }
}

void check_all(const std::string& name, const nn::ModelOptions& options) {
  DOCTEST_CAPTURE(name);
  const auto model = strong_model(options);
  check_causality(*model);
  check_streaming(*model);
  check_padding(*model);
  check_rows(*model);
  check_gradient_through_state(*model);
  check_padding_gradient(*model);
}

}  // namespace properties
