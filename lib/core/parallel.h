#pragma once
// Processes many items in several threads.
// Starts as many threads as the system allows.
// Processes a stream in several threads and writes the results in input order.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "core/base.h"

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

/// Reads inputs, processes them in `jobs` threads and writes the outputs in input order.
/// read(input) fills the next input and returns false at the end. make_work() gives each worker its
/// own function work(input, output). write(output) receives the outputs in order. read and write
/// run in the calling thread. The function holds at most 2 * jobs + 1 inputs. An exception from any
/// of the three callbacks stops the processing and is rethrown here. With one job, or if the system
/// starts no thread, everything runs in the calling thread.
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
  std::size_t next_to_work = 0;  // a running count; the slot's index is the count modulo
                                 // slots.size()
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
  // Declared last, so that the threads join before the variables that they use are destroyed.
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
    // Read another input while a slot is free and the oldest result is not ready; otherwise wait
    // for that result and write it.
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
