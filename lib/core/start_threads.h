#pragma once
// Starts as many threads as the system allows.

#include <cstddef>
#include <new>
#include <system_error>
#include <vector>

namespace core {

/// Starts up to `n` threads; thread i of [0, n) runs body(i). If the system refuses a thread (each
/// needs a mapped stack, which ulimit -v may refuse), fewer threads run, perhaps none.
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
