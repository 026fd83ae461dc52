// For any numbers in a file of targets, what is accepted as a distribution is one.

#include "fuzz/target.h"
#include "store/targets.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

FUZZ_TARGET(targets)(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kWords = 50;
  std::vector<float> numbers(size / sizeof(float) / 2 * 2);
  if (!numbers.empty()) std::memcpy(numbers.data(), data, numbers.size() * sizeof(float));
  const std::size_t keep = numbers.size() / 2;
  const std::span all(numbers);
  if (!store::is_distribution(all.first(keep), all.last(keep), kWords)) return;
  std::vector<double> p(kWords, 0);
  double sum = 0;
  for (std::size_t i = 0; i < keep; ++i) {
    const auto word = static_cast<std::size_t>(numbers[i]);
    if (word >= kWords || static_cast<float>(word) != numbers[i]) std::abort();
    if (p[word] > 0 && numbers[keep + i] > 0) std::abort();
    p[word] += static_cast<double>(numbers[keep + i]);
  }
  for (const double share : p) {
    if (!(share >= 0 && share <= 1)) std::abort();
    sum += share;
  }
  if (!(sum <= 1.001)) std::abort();
}
