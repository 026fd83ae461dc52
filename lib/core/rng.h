#pragma once
// A small random generator with the same numbers on every platform (xoshiro256**, Blackman & Vigna
// 2018).

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace core {

class Rng {
 public:
  using State = std::array<std::uint64_t, 4>;
  /// Streams of one seed are independent: `stream` numbers them (an epoch, a sequence, a worker).
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0);
  std::uint64_t next();
  /// Uniform in [0, n), without bias; n > 0.
  std::uint64_t below(std::uint64_t n);
  /// Uniform in [0, 1), 53 bits.
  double uniform();
  /// Standard normal (Box-Muller, one value a call).
  double normal();

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

 private:
  State state_;
};

}  // namespace core
