#pragma once
// What a process does from time to time beside its work, such as saying that it is alive.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace ranks {

/// Calls `beat` every so often in a thread of its own until it ends, or fails.
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
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;
  /// Throws what `beat` threw.
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
  std::thread thread_;  // last: it uses the others
};

}  // namespace ranks
