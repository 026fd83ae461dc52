#pragma once
// The same work on many items in several threads.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace core {

/// Each of `jobs` threads makes itself a work() with make_work() and calls work(i) for the next i
/// of [0, n) that no other has taken; with one job all runs in the calling thread. The first
/// exception ends it and is thrown here.
template <class MakeWork>
void parallel_for(int jobs, std::uint64_t n, const MakeWork& make_work) {
  if (jobs <= 1 || n <= 1) {
    auto work = make_work();
    for (std::uint64_t i = 0; i < n; ++i) work(i);
    return;
  }
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < std::min<std::uint64_t>(static_cast<std::uint64_t>(jobs), n); ++t)
      threads.emplace_back([&] {
        try {
          auto work = make_work();
          for (std::uint64_t i; (i = next++) < n;) work(i);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!error) error = std::current_exception();
          next = n;
        }
      });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace core
