#pragma once
// Dropout masks of attention from a counter-based random stream, so that no mask is stored. Equal
// seed, head, query and slot give equal results in forward, backward and tests.

#include <cmath>
#include <cstdint>

namespace nn {

class DropoutStream {
 public:
  /// Drops with probability p, 0 <= p < 1, to a precision of 2^-32.
  DropoutStream(double p, std::uint64_t seed)
      : seed_(seed), threshold_(static_cast<std::uint32_t>(
                         std::fmin(std::rint(p * 4294967296.0), 4294967295.0))),
        scale_(static_cast<float>(1 / (1 - p))) {}

  /// The stream of one query in one head. Each row has its own 64-bit key. A slot costs a few
  /// 32-bit operations, which the compiler vectorises.
  class Row {
   public:
    bool drops(std::uint32_t slot) const {
      std::uint32_t h = (slot + first_) * 0x9e3779b1u;
      h = (h ^ (h >> 16)) * 0x21f0aaadu + second_;
      h = (h ^ (h >> 15)) * 0x735a2d97u;
      return h < threshold_;
    }

   private:
    friend DropoutStream;
    Row(std::uint64_t key, std::uint32_t threshold)
        : first_(static_cast<std::uint32_t>(key)), second_(static_cast<std::uint32_t>(key >> 32)),
          threshold_(threshold) {}
    std::uint32_t first_, second_, threshold_;
  };

  /// Returns the stream of a query. `head` is unique over the rows of a batch.
  Row row(std::uint64_t head, std::uint64_t query) const {
    return {mixed(mixed(seed_ + kStep * (head + 1)) + kStep * (query + 1)), threshold_};
  }
  /// Returns the exact drop probability: p to a precision of 2^-32. Over 2^32 slots a row drops
  /// exactly this share, because the hash is a bijection of slots.
  double share() const { return threshold_ / 4294967296.0; }
  /// Returns the factor of kept weights, 1 / (1 - p).
  float scale() const { return scale_; }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  // Final mixing step of SplitMix64 (Steele, Lea & Flood 2014).
  static std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  std::uint64_t seed_;
  std::uint32_t threshold_;
  float scale_;
};

}  // namespace nn
