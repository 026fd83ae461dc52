// The blocked loss of a teacher, compared with the divergence over whole rows, values and
// gradients.
#include "nn/memory/joint_loss.h"

#include <doctest/doctest.h>

#include "nn/heads/softmax_heads.h"
#include "unit/thrown.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kRows = 3, kSteps = 4, kLossWords = 11, kLossWidth = 6;

nn::Batch taught_batch() {
  nn::Batch batch;
  batch.inputs = batch.targets = torch::randint(kLossWords, {kRows, kSteps}, torch::kInt64);
  batch.weight = torch::ones({kRows, kSteps});
  batch.weight[1][2] = 0;
  batch.weight[2][1] = 0.5;
  const Tensor place = torch::zeros({kRows, kSteps}, torch::kInt64);
  batch.place = {place, place, place};
  batch.fresh = torch::ones({kRows}, torch::kBool);
  return batch;
}

// `named` tokens of each row from a random distribution, which is complete if all tokens are named.
nn::Teachers teachers_of(std::int64_t named) {
  const Tensor p = torch::randn({kRows, kSteps, kLossWords}).mul(2).softmax(2);
  auto [shares, words] = p.topk(named, 2);
  shares = torch::cat({shares, torch::zeros({kRows, kSteps, 2})}, 2);  // unused places
  words = torch::cat({words, torch::zeros({kRows, kSteps, 2}, torch::kInt64)}, 2);
  shares[0][1].zero_();  // a token without a teacher
  return {words, shares};
}

// Row by row and token by token in float64, with autograd.
Tensor plain_loss(const Tensor& f, const Tensor& weight, const nn::Batch& batch,
    const nn::Teachers& teachers, double beta) {
  Tensor sum = torch::zeros({}, torch::kFloat64);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const Tensor q = f[row][step].matmul(weight.t()).softmax(0);
      const Tensor own = -q[batch.targets[row][step].item<std::int64_t>()].log();
      std::vector<double> p(kLossWords, 0);
      double rest = 1;
      for (std::int64_t j = 0; j < teachers.words.size(2); ++j) {
        const double share = teachers.shares[row][step][j].item<double>();
        p[static_cast<std::size_t>(teachers.words[row][step][j].item<std::int64_t>())] += share;
        rest -= share;
      }
      Tensor loss = own;
      if (rest < 1) {
        Tensor others = torch::zeros({}, torch::kFloat64);
        Tensor divergence = torch::zeros({}, torch::kFloat64);
        bool open = false;
        for (std::int64_t word = 0; word < kLossWords; ++word) {
          const double share = p[static_cast<std::size_t>(word)];
          if (share > 0) {
            divergence = divergence + share * (std::log(share) - q[word].log());
          } else {
            others = others + q[word];
            open = true;
          }
        }
        if (open && rest > 1e-5) divergence = divergence + rest * (std::log(rest) - others.log());
        loss = beta * divergence + (1 - beta) * own;
      }
      sum = sum + loss * batch.weight[row][step].item<double>();
    }
  return sum;
}

double apart(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / (b.abs().max() + 1e-12)).item<double>();
}

}  // namespace

DOCTEST_TEST_CASE("the loss and its gradients are those of whole rows, however blocks are cut") {
  torch::manual_seed(5);
  const nn::Batch batch = taught_batch();
  nn::PlainHead head(kLossWords, kLossWidth);
  head.to(torch::kFloat64);
  const Tensor weight = head.weights()[0];
  {
    const torch::NoGradGuard no_gradient;
    weight.copy_(torch::randn({kLossWords, kLossWidth}, torch::kFloat64));
  }
  const Tensor f = torch::randn({kRows, kSteps, kLossWidth}, torch::kFloat64).requires_grad_();
  for (const std::int64_t named : {std::int64_t{1}, std::int64_t{4}, kLossWords})
    for (const double beta : {0.0, 0.3, 1.0}) {
      const auto teachers = teachers_of(named);
      const Tensor expected = plain_loss(f, weight, batch, teachers, beta);
      const auto wanted = torch::autograd::grad({expected * 1.5}, {f, weight});
      for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1} << 26}) {
        const Tensor loss = nn::target_loss(f, batch, head, teachers, beta, {bytes});
        DOCTEST_CHECK(apart(loss, expected) < 1e-6);  // shares are float32
        const auto found = torch::autograd::grad({loss * 1.5}, {f, weight});
        DOCTEST_CHECK(apart(found[0], wanted[0]) < 1e-6);
        DOCTEST_CHECK(apart(found[1], wanted[1]) < 1e-6);
        const torch::NoGradGuard no_gradient;
        DOCTEST_CHECK(apart(nn::target_loss(f, batch, head, teachers, beta), expected) < 1e-6);
      }
    }
}

DOCTEST_TEST_CASE("a softmax with a bias takes no teacher") {
  torch::manual_seed(5);
  nn::PlainHead head(kLossWords, kLossWidth, /*bias=*/true);
  const Tensor f = torch::randn({kRows, kSteps, kLossWidth});
  const auto refused =
      thrown([&] { nn::target_loss(f, taught_batch(), head, teachers_of(3), 0.5); });
  DOCTEST_CHECK(refused.code == 64);
}
