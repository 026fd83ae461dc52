#include "train/column_cuts.h"
#include "train/seed_streams.h"

#include <algorithm>
#include <cmath>

namespace train {
namespace {

constexpr double kHalved = 0.05;  // share of segments with half the mean length
constexpr std::int64_t kLeast = 5;

}  // namespace

ColumnCuts::ColumnCuts(std::int64_t total, std::int64_t length, double deviation,
                       std::uint64_t seed)
    : length_(length), count_((total + length - 1) / length) {
  if (deviation == 0) return;
  core::Rng rng(seed, kOrderStream);
  const auto least = std::min(kLeast, length);
  const auto most = length + static_cast<std::int64_t>(3 * deviation);
  for (std::int64_t left = total; left > 0; left -= lengths_.back()) {
    const auto mean = static_cast<double>(length) * (rng.uniform() < kHalved ? 0.5 : 1);
    const auto drawn = std::clamp(std::llround(mean + deviation * rng.normal()),
                                  static_cast<long long>(least), static_cast<long long>(most));
    lengths_.push_back(std::min<std::int64_t>(drawn, left));
  }
  count_ = std::ssize(lengths_);
  permutation_ = Permutation(count_, seed);
}

std::int64_t ColumnCuts::begin(std::int64_t epoch, std::int64_t step) {
  if (lengths_.empty()) return step * length_;
  if (epoch != epoch_) {
    begins_.assign(1, 0);
    for (const auto i : permutation_.of(epoch))
      begins_.push_back(begins_.back() + lengths_[static_cast<std::size_t>(i)]);
    epoch_ = epoch;
  }
  return begins_[static_cast<std::size_t>(step)];
}

}  // namespace train
