#pragma once
// Divides work among the threads of a team.

#include <cstdint>

namespace infer {

/// A thread's range [begin(n), end(n)) of n items.
struct TeamShare {
  std::int64_t thread, threads;
  std::int64_t begin(std::int64_t n) const { return n * thread / threads; }
  std::int64_t end(std::int64_t n) const { return n * (thread + 1) / threads; }
};

}  // namespace infer
