#include "task/sequences.h"

#include <numbers>

namespace task {

std::vector<std::uint32_t> induction_sequence(const InductionShape& shape, core::Rng& rng) {
  std::vector<std::uint32_t> symbols(static_cast<std::size_t>(shape.symbols));
  std::iota(symbols.begin(), symbols.end(), 0U);
  rng.shuffle(symbols);
  const auto pairs = static_cast<std::uint64_t>(shape.pairs);
  const auto draw_noise = [&] {
    return symbols[2 * pairs + rng.below(symbols.size() - 2 * pairs)];
  };
  std::vector<std::uint64_t> seen;
  std::vector<std::uint32_t> sequence;
  const auto put = [&](std::uint64_t pair) {
    sequence.push_back(symbols[2 * pair]);
    sequence.push_back(symbols[2 * pair + 1]);
  };
  const auto body = static_cast<std::size_t>(shape.length - 2);
  while (sequence.size() + 2 <= body) {
    seen.push_back(rng.below(pairs));
    put(seen.back());
    for (auto n = rng.below(static_cast<std::uint64_t>(shape.gap) + 1);
         n > 0 && sequence.size() < body; --n)
      sequence.push_back(draw_noise());
  }
  while (sequence.size() < body) sequence.push_back(draw_noise());
  put(seen[rng.below(seen.size())]);
  return sequence;
}

namespace {

constexpr std::int64_t kLongest = 7;  // half time units
constexpr std::size_t kChosen = 9;

}  // namespace

double common_period(const Periods& periods) {
  std::int64_t common = 1;
  for (const double period : periods) common = std::lcm(common, std::llround(2 * period));
  return static_cast<double>(common) / 2;
}

std::vector<Periods> chosen_periods() {
  std::vector<Periods> all;
  for (std::int64_t a = 1; a <= kLongest; ++a)
    for (std::int64_t b = a + 1; b <= kLongest; ++b)
      for (std::int64_t c = b + 1; c <= kLongest; ++c)
        all.push_back(
            {static_cast<double>(a) / 2, static_cast<double>(b) / 2, static_cast<double>(c) / 2});
  std::ranges::stable_sort(all, {}, common_period);
  all.resize(kChosen);
  return all;
}

std::vector<float> observe(
    const Periods& periods, double per_unit, double phase, std::int64_t first, std::int64_t n) {
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(n) * 2 * kMoons);
  for (std::int64_t t = first; t < first + n; ++t) {
    for (const double period : periods) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(t) / per_unit / period + phase;
      rows.push_back(static_cast<float>(std::sin(angle)));
      rows.push_back(static_cast<float>(std::cos(angle)));
    }
  }
  return rows;
}

}  // namespace task
