#pragma once
// How the threads of a team divide what they do together.

#include <cstdint>

namespace infer {

/// A thread's part of n things: [begin(n), end(n)).
struct TeamShare {
  std::int64_t thread, threads;
  std::int64_t begin(std::int64_t n) const { return n * thread / threads; }
  std::int64_t end(std::int64_t n) const { return n * (thread + 1) / threads; }
};

}  // namespace infer
