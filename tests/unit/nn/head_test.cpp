// Blocks of both heads, compared with log-probabilities written out in full and differentiated by
// autograd.

#include <doctest/doctest.h>

#include "nn/heads/softmax_heads.h"

namespace {

constexpr std::int64_t kHeadWords = 23, kHeadWidth = 8;

struct HeadCase {
  std::string name;
  std::shared_ptr<nn::Embedding> embedding;
  std::shared_ptr<nn::Head> head;
  nn::Bands bands;
  double cap = 0;
  bool bias = false;
};

void randomise(torch::nn::Module& module, torch::ScalarType type) {
  const torch::NoGradGuard no_grad;
  for (auto& weight : module.parameters()) weight.normal_(0, 0.7);
  module.to(type);
}

std::vector<HeadCase> cases(torch::ScalarType type) {
  torch::manual_seed(3);
  std::vector<HeadCase> all;
  const nn::Bands plain{kHeadWords, kHeadWidth, {}, 4}, one{kHeadWords, kHeadWidth, {6}, 2},
      two{kHeadWords, kHeadWidth, {5, 11}, 2}, narrow{kHeadWords, kHeadWidth, {1, 2, 22}, 20},
      projected{kHeadWords, kHeadWidth, {5, 11}, 2, 6};
  auto table = std::make_shared<nn::Embedding>(plain);
  all.push_back({"plain", nullptr, std::make_shared<nn::PlainHead>(kHeadWords, kHeadWidth), plain});
  all.push_back({"plain, tied", table, std::make_shared<nn::PlainHead>(table), plain});
  all.push_back({"capped", nullptr,
      std::make_shared<nn::PlainHead>(kHeadWords, kHeadWidth, false, 1.5), plain, 1.5});
  all.push_back({"plain, biased", nullptr,
      std::make_shared<nn::PlainHead>(kHeadWords, kHeadWidth, true), plain, 0, true});
  for (const auto& bands : {one, two, narrow, projected}) {
    const auto name = "adaptive, bands " + std::to_string(bands.count()) + " from " +
                      std::to_string(bands.width(0));
    auto input = std::make_shared<nn::Embedding>(bands),
         other = std::make_shared<nn::Embedding>(bands);
    all.push_back(
        {name, nullptr, std::make_shared<nn::AdaptiveHead>(bands, nullptr, false, 0.2), bands});
    all.push_back({name + ", tied", input,
        std::make_shared<nn::AdaptiveHead>(bands, input, true, 0.2), bands});
    all.push_back({name + ", tables tied", other,
        std::make_shared<nn::AdaptiveHead>(bands, other, false, 0.2), bands});
    all.push_back({name + ", biased", nullptr,
        std::make_shared<nn::AdaptiveHead>(bands, nullptr, false, 0.2, true), bands, 0, true});
  }
  for (auto& one_case : all) {
    if (one_case.embedding) randomise(*one_case.embedding, type);
    randomise(*one_case.head, type);
    one_case.head->eval();
  }
  return all;
}

/// Returns log p and the first-level log z of each row by definition, one row and one band at a
/// time.
std::pair<torch::Tensor, torch::Tensor> written_out(
    const HeadCase& c, const torch::Tensor& f, const torch::Tensor& targets) {
  const auto weights = c.head->weights();
  const auto bands = static_cast<std::size_t>(c.bands.count());
  std::vector<torch::Tensor> log_prob, log_z;
  const auto bias = c.bias ? weights[weights.size() - (bands > 1 ? 2 : 1)]
                           : torch::zeros({kHeadWords}, f.options());
  for (std::int64_t r = 0; r < f.size(0); ++r) {
    const auto seen = c.bands.narrow() ? weights[2 * bands].t().mv(f[r]) : f[r];
    auto first = weights[0].mv(seen) + bias.narrow(0, 0, c.bands.end(0));
    if (c.cap > 0) first = c.cap * torch::tanh(first / c.cap);
    if (bands > 1) {
      auto slots = weights[bands].mv(seen);
      if (c.bias) slots = slots + weights.back();
      first = torch::cat({first, slots});
    }
    const auto z = first.exp().sum().log();
    const auto word = targets[r].item<std::int64_t>();
    std::int64_t band = 0;
    while (word >= c.bands.end(band)) ++band;
    if (band == 0) {
      log_prob.push_back(first[word] - z);
    } else {
      const auto hidden = weights[bands + static_cast<std::size_t>(band)].t().mv(f[r]);
      const auto begin = c.bands.begin(band);
      const auto scores = weights[static_cast<std::size_t>(band)].mv(hidden) +
                          bias.narrow(0, begin, c.bands.end(band) - begin);
      const auto slot = first[c.bands.end(0) + band - 1] - z;
      log_prob.push_back(slot + scores[word - c.bands.begin(band)] - scores.exp().sum().log());
    }
    log_z.push_back(z);
  }
  return {torch::stack(log_prob), torch::stack(log_z)};
}

struct Inputs {
  torch::Tensor f, targets, d_log_prob, d_log_z;
};

Inputs inputs(torch::ScalarType type, std::int64_t rows, std::optional<std::int64_t> word = {}) {
  torch::manual_seed(11);
  Inputs in;
  in.f = torch::randn({rows, kHeadWidth}, torch::kFloat64).to(type);
  in.targets =
      word ? torch::full({rows}, *word, torch::kInt64) : torch::arange(rows) * 7 % kHeadWords;
  in.d_log_prob = torch::randn({rows}, torch::kFloat64).to(type);
  in.d_log_z = torch::randn({rows}, torch::kFloat64).to(type);
  return in;
}

double scaled_gap(const torch::Tensor& a, const torch::Tensor& b) {
  return a.numel() == 0 ? 0 : ((a - b).abs() / (1 + b.abs())).max().item<double>();
}

/// Checks the inputs in blocks of `size` rows: the gradients of f and of the weights.
void check_blocks(const HeadCase& c, const Inputs& in, std::int64_t size, double close) {
  const auto weights = c.head->weights();
  const auto leaf = in.f.detach().clone().requires_grad_();
  const auto [log_prob, log_z] = written_out(c, leaf, in.targets);
  for (auto& weight : weights) weight.mutable_grad() = torch::Tensor();
  ((log_prob * in.d_log_prob).sum() + (log_z * in.d_log_z).sum()).backward();

  std::vector<torch::Tensor> gradients;
  for (const auto& weight : weights) gradients.push_back(torch::zeros_like(weight));
  for (std::int64_t begin = 0; begin < in.f.size(0); begin += size) {
    const auto end = std::min(begin + size, in.f.size(0));
    const auto part = [&](const torch::Tensor& x) { return x.slice(0, begin, end); };
    const auto block = c.head->block(part(in.f), part(in.targets), true);
    DOCTEST_CHECK(scaled_gap(block->log_prob, part(log_prob)) < close);
    DOCTEST_CHECK(scaled_gap(block->log_z, part(log_z)) < close);
    DOCTEST_CHECK_FALSE(block->log_prob.requires_grad());
    const auto d_f = block->backward(part(in.d_log_prob), part(in.d_log_z), gradients);
    DOCTEST_CHECK(scaled_gap(d_f, part(leaf.grad())) < close);
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    DOCTEST_CAPTURE(i);
    const auto& expected = weights[i].grad();
    DOCTEST_CHECK(scaled_gap(gradients[i],
                      expected.defined() ? expected : torch::zeros_like(weights[i])) < close);
  }
}

}  // namespace

DOCTEST_TEST_CASE("blocks of every head equal the written-out softmax in values and gradients") {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const double close = type == torch::kFloat64 ? 1e-10 : 1e-5;
    for (const auto& c : cases(type)) {
      DOCTEST_CAPTURE(c.name);
      for (const std::int64_t size : {1, 5, 40}) check_blocks(c, inputs(type, 40), size, close);
      for (const std::int64_t word : {std::int64_t{0}, kHeadWords - 1})  // one token, one band
        check_blocks(c, inputs(type, 4, word), 4, close);
    }
  }
}

DOCTEST_TEST_CASE("gradients are the slopes of the values") {
  for (const auto& c : cases(torch::kFloat64)) {
    DOCTEST_CAPTURE(c.name);
    const auto in = inputs(torch::kFloat64, 12);
    const auto loss = [&] {
      const auto block = c.head->block(in.f, in.targets, false);
      return ((block->log_prob * in.d_log_prob).sum() + (block->log_z * in.d_log_z).sum())
          .item<double>();
    };
    std::vector<torch::Tensor> gradients;
    for (const auto& weight : c.head->weights()) gradients.push_back(torch::zeros_like(weight));
    const auto d_f =
        c.head->block(in.f, in.targets, true)->backward(in.d_log_prob, in.d_log_z, gradients);
    auto tensors = c.head->weights();
    tensors.push_back(in.f);
    gradients.push_back(d_f);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      auto values = tensors[i].detach().flatten();
      for (std::int64_t at = 0; at < values.size(0); at += 5) {
        const double kept = values[at].item<double>(), step = 1e-5;
        values[at] = kept + step;
        const double above = loss();
        values[at] = kept - step;
        const double below = loss();
        values[at] = kept;
        DOCTEST_CHECK(std::abs((above - below) / (2 * step) -
                               gradients[i].flatten()[at].item<double>()) < 1e-7);
      }
    }
  }
}

DOCTEST_TEST_CASE("whole rows are distributions that agree with the blocks") {
  for (const auto type : {torch::kFloat64, torch::kFloat32}) {
    const double close = type == torch::kFloat64 ? 1e-12 : 2e-6;
    for (const auto& c : cases(type)) {
      DOCTEST_CAPTURE(c.name);
      const auto in = inputs(type, 40);
      torch::Tensor log_z;
      const auto rows = c.head->log_probs(in.f, &log_z);
      DOCTEST_CHECK(rows.size(1) == kHeadWords);
      DOCTEST_CHECK(c.head->vocabulary() == kHeadWords);
      DOCTEST_CHECK((rows.exp().sum(1) - 1).abs().max().item<double>() < close);
      const auto block = c.head->block(in.f, in.targets, false);
      DOCTEST_CHECK(
          scaled_gap(rows.gather(1, in.targets.unsqueeze(1)).squeeze(1), block->log_prob) < close);
      DOCTEST_CHECK(scaled_gap(log_z, block->log_z) < close);
    }
  }
}

DOCTEST_TEST_CASE("tail dropout acts in training alone, the same in both directions") {
  for (const auto& c : cases(torch::kFloat64)) {
    if (c.bands.count() == 1) continue;
    DOCTEST_CAPTURE(c.name);
    const auto in = inputs(torch::kFloat64, 40);
    const auto sure = c.head->block(in.f, in.targets, false)->log_prob;
    c.head->train();
    torch::manual_seed(21);
    const auto first = c.head->block(in.f, in.targets, true);
    const auto common = in.targets < c.bands.end(0);
    DOCTEST_CHECK(torch::equal(first->log_prob.index({common}), sure.index({common})));
    DOCTEST_CHECK_FALSE(torch::allclose(first->log_prob, sure));

    // The slope in a direction of f, with the same dropout mask.
    std::vector<torch::Tensor> gradients;
    for (const auto& weight : c.head->weights()) gradients.push_back(torch::zeros_like(weight));
    const auto d_f = first->backward(in.d_log_prob, in.d_log_z, gradients);
    const auto direction = torch::randn_like(in.f);
    const auto moved = [&](double step) {
      torch::manual_seed(21);
      const auto block = c.head->block(in.f + direction * step, in.targets, false);
      return ((block->log_prob * in.d_log_prob).sum() + (block->log_z * in.d_log_z).sum())
          .item<double>();
    };
    const double slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
    DOCTEST_CHECK(std::abs(slope - (d_f * direction).sum().item<double>()) < 1e-6);
    c.head->eval();
  }
}

DOCTEST_TEST_CASE("large and equal scores stay finite") {
  nn::PlainHead head(kHeadWords, kHeadWidth);
  torch::NoGradGuard no_grad;
  auto weight = head.weights()[0];
  weight.fill_(50);
  const auto f = torch::full({3, kHeadWidth}, 100.0F);
  const auto targets = torch::tensor({0, 5, 22});
  const auto block = head.block(f, targets, true);
  DOCTEST_CHECK(
      (block->log_prob + std::log(static_cast<double>(kHeadWords))).abs().max().item<double>() <
      1e-5);
  weight[0].fill_(-50);  // 80,000 nats below the others
  const auto lost = head.block(f, targets, true);
  DOCTEST_CHECK(lost->log_prob[0].item<double>() == doctest::Approx(-80000 - std::log(22.0)));
  std::vector<torch::Tensor> gradients = {torch::zeros_like(weight)};
  const auto d_f = lost->backward(torch::ones({3}), torch::zeros({3}), gradients);
  DOCTEST_CHECK(d_f.isfinite().all().item<bool>());
  DOCTEST_CHECK(gradients[0].isfinite().all().item<bool>());
}

DOCTEST_TEST_CASE("float32 softmax over many words is as good as float64's") {
  torch::manual_seed(4);
  const std::int64_t words = 33001, rows = 9;
  nn::PlainHead head(words, 16);
  const torch::NoGradGuard no_grad;
  head.weights()[0].normal_(0, 1.5);
  const auto f = torch::randn({rows, 16}), targets = torch::randint(words, {rows}, torch::kInt64);
  const auto block = head.block(f, targets, true);
  const auto scores = f.to(torch::kFloat64).mm(head.weights()[0].to(torch::kFloat64).t());
  DOCTEST_CHECK(scaled_gap(block->log_z.to(torch::kFloat64), scores.logsumexp(1)) < 1e-6);
  const auto expected = scores.log_softmax(1).gather(1, targets.unsqueeze(1)).squeeze(1);
  DOCTEST_CHECK(scaled_gap(block->log_prob.to(torch::kFloat64), expected) < 1e-6);
}

DOCTEST_TEST_CASE("bfloat16 weights: sums in float32") {
  for (const auto& c : cases(torch::kBFloat16)) {
    DOCTEST_CAPTURE(c.name);
    const auto in = inputs(torch::kFloat32, 40);
    const auto block = c.head->block(in.f, in.targets, true);
    DOCTEST_CHECK((block->log_prob.scalar_type() == torch::kFloat32));
    const auto exact = c;
    const auto [log_prob, log_z] = written_out(exact, in.f.to(torch::kBFloat16), in.targets);
    DOCTEST_CHECK((block->log_prob - log_prob).abs().max().item<double>() < 0.2);
    std::vector<torch::Tensor> gradients;
    for (const auto& weight : c.head->weights())
      gradients.push_back(torch::zeros_like(weight, torch::kFloat32));
    const auto d_f = block->backward(in.d_log_prob, in.d_log_z, gradients);
    DOCTEST_CHECK((d_f.scalar_type() == torch::kFloat32));
    DOCTEST_CHECK(d_f.isfinite().all().item<bool>());
  }
}
