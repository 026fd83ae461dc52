#include "task/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/error.h"
#include "core/rng.h"

namespace task {
namespace {

double resampled_difference(const std::vector<ScoreBlock>& blocks, core::Rng& rng) {
  double a = 0, b = 0;
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const ScoreBlock& block = blocks[rng.below(blocks.size())];
    a += block.a, b += block.b, tokens += block.tokens;
  }
  return (b - a) / static_cast<double>(tokens);
}

// The value below which a share q of sorted values lies, between neighbours linearly.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Comparison compare(const std::vector<ScoreBlock>& given, std::int64_t resamples, double confidence,
                   std::uint64_t seed, std::int64_t jobs) {
  std::vector<ScoreBlock> blocks;
  ScoreBlock sum;
  for (const ScoreBlock& block : given) {
    if (block.tokens == 0) continue;
    blocks.push_back(block);
    sum.a += block.a, sum.b += block.b, sum.tokens += block.tokens;
  }
  if (blocks.size() < 2)
    core::fail(core::Code::bad_data,
               "a comparison takes two blocks of tokens at least, there are {}; use a smaller "
               "--block or a longer text",
               blocks.size());
  Comparison result;
  const auto tokens = static_cast<double>(sum.tokens);
  result.loss_a = sum.a / tokens, result.loss_b = sum.b / tokens;
  result.difference = (sum.b - sum.a) / tokens;

  std::vector<double> differences(static_cast<std::size_t>(resamples));
  const auto threads = static_cast<std::size_t>(std::clamp<std::int64_t>(jobs, 1, resamples));
  const auto draw = [&](std::size_t thread) {
    for (std::size_t i = thread; i < differences.size(); i += threads) {
      core::Rng rng(seed, i);
      differences[i] = resampled_difference(blocks, rng);
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::size_t thread = 1; thread < threads; ++thread) workers.emplace_back(draw, thread);
    draw(0);
  }
  const auto as_far = std::count_if(differences.begin(), differences.end(), [&](double d) {
    return std::abs(d - result.difference) >= std::abs(result.difference);
  });
  result.p = static_cast<double>(as_far + 1) / static_cast<double>(resamples + 1);
  std::sort(differences.begin(), differences.end());
  result.low = quantile(differences, (1 - confidence) / 2);
  result.high = quantile(differences, (1 + confidence) / 2);
  return result;
}

}  // namespace task
