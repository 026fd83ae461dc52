#pragma once
// Processes many items in several threads.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/start_threads.h"

namespace core {

/// Processes the items [0, n) in `jobs` threads. Each thread obtains a function work() from
/// make_work() and calls work(i) for the next item i that no thread has taken. With one job, or if
/// the system starts no thread, everything runs in the calling thread. The first exception stops
/// the processing and is rethrown here.
template <class MakeWork>
void parallel_for(int jobs, std::uint64_t n, const MakeWork& make_work) {
  std::atomic<std::uint64_t> next{0};
  const auto work_on = [&] {
    auto work = make_work();
    for (std::uint64_t i; (i = next++) < n;) work(i);
  };
  if (jobs <= 1 || n <= 1) return work_on();
  std::exception_ptr error;
  std::mutex mutex;
  bool any = false;
  {
    std::vector<std::jthread> threads;
    start_threads(threads, std::min<std::uint64_t>(static_cast<std::uint64_t>(jobs), n),
                  [&](std::size_t) {
                    try {
                      work_on();
                    } catch (...) {
                      const std::lock_guard lock(mutex);
                      if (!error) error = std::current_exception();
                      next = n;
                    }
                  });
    any = !threads.empty();
  }
  if (error) std::rethrow_exception(error);
  if (!any) work_on();
}

}  // namespace core
