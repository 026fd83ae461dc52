#pragma once
// A small random generator with identical numbers on every platform (xoshiro256**, Blackman & Vigna
// 2018).

#include "core/base.h"

namespace core {

class Rng {
 public:
  using State = std::array<std::uint64_t, 4>;
  /// Creates the stream `stream` (an epoch, a sequence, a worker) of `seed`. The streams of a seed
  /// are independent.
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0);
  /// Returns 64 random bits.
  std::uint64_t next();
  /// Returns a uniform number in [0, n), without bias; n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Returns a uniform number in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Returns a standard normal number (Box-Muller, one value per call).
  double normal();

  template <class T> void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  State state_;
};

}  // namespace core
