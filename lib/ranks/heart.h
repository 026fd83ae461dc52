#pragma once
// Heartbeat thread.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base.h"

namespace ranks {

/// Calls `beat` periodically in a separate thread, until end() or until it throws.
class Heart {
 public:
  Heart(std::chrono::milliseconds every, std::function<void()> beat)
      : thread_([this, every, beat = std::move(beat)] {
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, every, [this] { return end_; })) {
            try {
              beat();
            } catch (...) {
              failure_ = std::current_exception();
              return;
            }
          }
        }) {}
  ~Heart() { stop(); }
  Heart(Heart&&) = delete;
  /// Stops the thread and rethrows the exception of `beat`, if any.
  void end() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ended_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last member, because the thread uses the others
};

}  // namespace ranks
