#pragma once
// Work on a stream in several threads, results in the order of the input.

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/start_threads.h"

namespace core {

/// read(input) fills the next input, false at the end; each worker has a function
/// work(input, output) of its own from make_work(); write(output) takes outputs in order. read and
/// write run in the calling thread. At most 2 * jobs + 1 inputs are held. An exception of any of
/// the three ends it and is thrown here. With one job, and where the system gives no thread, all
/// runs in the calling thread.
template <class Input, class Output>
void work_in_order(int jobs, const std::function<bool(Input&)>& read,
                   const std::function<std::function<void(Input&, Output&)>()>& make_work,
                   const std::function<void(Output&)>& write) {
  const auto work_here = [&] {
    const auto work = make_work();
    Input input;
    Output output;
    while (read(input)) {
      work(input, output);
      write(output);
    }
  };
  if (jobs <= 1) return work_here();

  struct Slot {
    Input input;
    Output output;
    std::exception_ptr error;
    enum { free, ready, taken, done } state = free;
  };
  std::vector<Slot> slots(static_cast<std::size_t>(jobs) * 2 + 1);
  std::mutex mutex;
  std::condition_variable work_there, result_there;
  std::size_t next_to_work = 0;  // a count; its slot is the count modulo slots.size()
  bool stopping = false;

  const auto worker = [&](std::size_t) {
    std::function<void(Input&, Output&)> work;
    std::unique_lock lock(mutex);
    for (;;) {
      const auto is_ready = [&] { return slots[next_to_work % slots.size()].state == Slot::ready; };
      work_there.wait(lock, [&] { return stopping || is_ready(); });
      if (stopping) return;
      Slot& slot = slots[next_to_work++ % slots.size()];
      slot.state = Slot::taken;
      lock.unlock();
      try {
        if (!work) work = make_work();
        work(slot.input, slot.output);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      slot.state = Slot::done;
      result_there.notify_one();
    }
  };
  // Declared after all they use: they end before it does.
  struct Stop {
    std::mutex& mutex;
    std::condition_variable& work_there;
    bool& stopping;
    std::vector<std::jthread> threads;
    ~Stop() {
      {
        const std::lock_guard lock(mutex);
        stopping = true;
      }
      work_there.notify_all();
    }
  } pool{mutex, work_there, stopping, {}};
  start_threads(pool.threads, static_cast<std::size_t>(jobs), worker);
  if (pool.threads.empty()) return work_here();

  std::size_t n_read = 0, n_written = 0;
  bool more = true;
  while (more || n_written < n_read) {
    Slot& oldest = slots[n_written % slots.size()];
    // Hand out work as long as there is room; write when the oldest result is there or room is not.
    if (more && n_read - n_written < slots.size()) {
      bool oldest_done = false;
      if (n_written < n_read) {
        const std::lock_guard lock(mutex);
        oldest_done = oldest.state == Slot::done;
      }
      if (!oldest_done) {
        Slot& slot = slots[n_read % slots.size()];
        more = read(slot.input);
        if (more) {
          const std::lock_guard lock(mutex);
          slot.state = Slot::ready;
          ++n_read;
          work_there.notify_one();
        }
        continue;
      }
    }
    {
      std::unique_lock lock(mutex);
      result_there.wait(lock, [&] { return oldest.state == Slot::done; });
    }
    if (oldest.error) std::rethrow_exception(oldest.error);
    write(oldest.output);
    oldest.state = Slot::free;
    ++n_written;
  }
}

}  // namespace core
