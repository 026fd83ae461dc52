#include "task/induction.h"

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

}  // namespace task
