#include "ranks/group.h"

#include <doctest/doctest.h>

#include "core/rng.h"
#include "unit/ranks/processes.h"

namespace {

constexpr std::int64_t kWidth = 3, kSteps = 2;

std::shared_ptr<ranks::Group> borrowed(ranks::Group& group) {
  return {&group, [](ranks::Group*) {}};
}

// Keys, and a weight for each number of each rank's loss, equal in every process.
torch::Tensor numbers(std::int64_t stream, std::int64_t n) {
  core::Rng rng(11, static_cast<std::uint64_t>(stream));
  torch::Tensor values = torch::empty({n, kWidth});
  auto* const value = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    value[i] = static_cast<float>(rng.uniform() - 0.5);
  return values;
}

// A member's loss over the visible keys. It differs between members.
torch::Tensor loss(const torch::Tensor& keys, std::int64_t member) {
  return (keys * numbers(100 + member, keys.size(0))).sin().mul(keys).sum();
}

std::int64_t cut(std::int64_t member, std::int64_t size, std::int64_t rows) {
  return member * rows / size * kSteps;
}

// In one process: the gradient of a member's keys from every member's loss, or from its own loss
// alone.
torch::Tensor plain(
    std::int64_t member, std::int64_t size, std::int64_t rows, ranks::KeyGradient gradient) {
  torch::Tensor keys = numbers(1, rows * kSteps).requires_grad_();
  torch::Tensor sum = torch::zeros({});
  for (std::int64_t other = 0; other < size; ++other)
    if (gradient == ranks::KeyGradient::all || other == member) sum = sum + loss(keys, other);
  sum.backward();
  return keys.grad().slice(0, cut(member, size, rows), cut(member + 1, size, rows)).clone();
}

// Compares what gather() returns and the gradient, for all ranks in teams of `size`.
std::string shared(
    ranks::Group& all, std::int64_t size, std::int64_t rows, ranks::KeyGradient gradient) {
  const ranks::Team team(borrowed(all), size);
  const torch::Tensor keys = numbers(1, rows * kSteps);
  torch::Tensor own =
      keys.slice(0, team.begin(rows) * kSteps, team.end(rows) * kSteps).clone().requires_grad_();
  const auto gathered = team.gather(own, rows, kSteps, gradient);
  if (!gathered.equal(keys)) return "other keys";
  loss(gathered, team.member()).backward();
  const auto want = plain(team.member(), size, rows, gradient);
  return torch::allclose(own.grad(), want, 1e-6, 1e-7) ? "same" : "another gradient";
}

}  // namespace

DOCTEST_TEST_CASE("gathered keys are those of one process, and so is their gradient") {
  for (const auto gradient : {ranks::KeyGradient::all, ranks::KeyGradient::own}) {
    for (const std::int64_t rows : {4, 5, 7, 2}) {  // 2: some have none
      const auto body = [=](ranks::Group& group) {
        return shared(group, group.size(), rows, gradient);
      };
      for (const int size : {1, 2, 3, 4})
        for (const auto& rank : run_ranks(size, body)) DOCTEST_CHECK(rank.text == "same");
    }
  }
}

DOCTEST_TEST_CASE("two teams beside each other do not see each other") {
  const auto body = [](ranks::Group& all) {
    const ranks::Team team(borrowed(all), 2);
    const auto gathered =
        team.gather(torch::full({1, 1}, all.rank() + 1.0F), 2, 1, ranks::KeyGradient::all);
    return fmt::format("{} of {}, {} of {}: {}", team.number(), team.teams(), team.member(),
        team.size(), gathered.sum().item<float>());
  };
  const auto all = run_ranks(4, body);
  DOCTEST_CHECK(all[0].text == "0 of 2, 0 of 2: 3");
  DOCTEST_CHECK(all[1].text == "0 of 2, 1 of 2: 3");
  DOCTEST_CHECK(all[2].text == "1 of 2, 0 of 2: 7");
  DOCTEST_CHECK(all[3].text == "1 of 2, 1 of 2: 7");
  const auto uneven = [](ranks::Group& group) {
    const ranks::Team team(borrowed(group), 2);
    return std::string("made");
  };
  for (const auto& rank : run_ranks(3, uneven)) {
    DOCTEST_CHECK(rank.code == 64);
    DOCTEST_CHECK(rank.text == "--memory-ranks: takes a divisor of the number of ranks, 3");
  }
}
