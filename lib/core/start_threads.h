#pragma once
// As many threads as the system gives.

#include <cstddef>
#include <new>
#include <system_error>
#include <vector>

namespace core {

/// Starts `n` threads, each with body(i), i in [0, n). Where the system gives no more of them (for
/// each its stack is mapped, which ulimit -v may refuse) there are fewer, perhaps none.
template <class Thread, class Body>
void start_threads(std::vector<Thread>& threads, std::size_t n, const Body& body) {
  threads.reserve(n);
  try {
    for (std::size_t i = 0; i < n; ++i) threads.emplace_back(body, i);
  } catch (const std::system_error&) {  // EAGAIN
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace core
