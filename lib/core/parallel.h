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
  } catch (const std::bad_alloc&) {}
}

/// Processes the items [0, n) in `jobs` threads. Each thread obtains a function work() from
/// make_work() and calls work(i) for the next item i that no thread has taken. With one job, or if
/// the system starts no thread, everything runs in the calling thread. The first exception stops
/// the processing and is rethrown here.
template <class MakeWork> void parallel_for(int jobs, std::uint64_t n, const MakeWork& make_work) {
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
    start_threads(
        threads, std::min<std::uint64_t>(static_cast<std::uint64_t>(jobs), n), [&](std::size_t) {
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

/// An InOrder processes inputs in `jobs` threads and hands the outputs on in input order.
/// make_work() gives each thread its own function work(input, output). write(output) runs within
/// push() and finish(). At most 2 * jobs + 1 inputs are held. push() and finish() rethrow the
/// exceptions of the callbacks, after which the object can only be destroyed. With one job, or if
/// the system starts no thread, push() does everything itself.
template <class Input, class Output> class InOrder {
 public:
  using Work = std::function<void(Input&, Output&)>;
  InOrder(int jobs, std::function<Work()> make_work, std::function<void(Output&)> write)
      : make_work_(std::move(make_work)), write_(std::move(write)),
        slots_(jobs > 1 ? static_cast<std::size_t>(jobs) * 2 + 1 : 1) {
    if (jobs > 1)
      start_threads(threads_, static_cast<std::size_t>(jobs), [this](std::size_t) { work(); });
    if (threads_.empty()) work_here_ = make_work_();
  }
  ~InOrder() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_there_.notify_all();
  }
  InOrder(InOrder&&) = delete;

  /// Returns the input that the next push() takes; it may hold an earlier one.
  Input& input() { return slot(n_pushed_).input; }
  void push() {
    Slot& next = slot(n_pushed_);
    if (threads_.empty()) {
      work_here_(next.input, next.output);
      return write_(next.output);
    }
    {
      const std::lock_guard lock(mutex_);
      next.state = Slot::ready;
    }
    ++n_pushed_;
    work_there_.notify_one();
    const auto is_done = [&] {
      const std::lock_guard lock(mutex_);
      return slot(n_written_).state == Slot::done;
    };
    while (n_pushed_ - n_written_ == slots_.size() || (n_written_ < n_pushed_ && is_done()))
      write_oldest();
  }
  /// Writes all outputs that are left.
  void finish() {
    while (n_written_ < n_pushed_) write_oldest();
  }

 private:
  struct Slot {
    Input input;
    Output output;
    std::exception_ptr error;
    enum { free, ready, taken, done } state = free;
  };
  Slot& slot(std::size_t count) { return slots_[count % slots_.size()]; }

  void write_oldest() {
    Slot& oldest = slot(n_written_);
    {
      std::unique_lock lock(mutex_);
      result_there_.wait(lock, [&] { return oldest.state == Slot::done; });
    }
    if (oldest.error) std::rethrow_exception(oldest.error);
    write_(oldest.output);
    oldest.state = Slot::free;
    ++n_written_;
  }

  void work() {
    Work work;
    std::unique_lock lock(mutex_);
    for (;;) {
      work_there_.wait(lock, [&] { return stopping_ || slot(n_taken_).state == Slot::ready; });
      if (stopping_) return;
      Slot& next = slot(n_taken_++);
      next.state = Slot::taken;
      lock.unlock();
      try {
        if (!work) work = make_work_();
        work(next.input, next.output);
      } catch (...) { next.error = std::current_exception(); }
      lock.lock();
      next.state = Slot::done;
      result_there_.notify_one();
    }
  }

  const std::function<Work()> make_work_;
  const std::function<void(Output&)> write_;
  Work work_here_;  // used without threads
  std::vector<Slot> slots_;
  std::size_t n_pushed_ = 0, n_taken_ = 0, n_written_ = 0;
  std::mutex mutex_;
  std::condition_variable work_there_, result_there_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last, so that they join before the others are destroyed
};

/// Reads inputs until read(input) returns false, and processes them as an InOrder does. read runs
/// in the calling thread. An exception of any callback stops the processing and is rethrown here.
template <class Input, class Output>
void work_in_order(int jobs, const std::function<bool(Input&)>& read,
    const std::function<typename InOrder<Input, Output>::Work()>& make_work,
    const std::function<void(Output&)>& write) {
  InOrder<Input, Output> order(jobs, make_work, write);
  while (read(order.input())) order.push();
  order.finish();
}

}  // namespace core
