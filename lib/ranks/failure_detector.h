#pragma once
// Notices that another rank is gone while this one waits for a device, which would wait for ever.

#include <condition_variable>
#include <exception>
#include <thread>

#include "ranks/gloo.h"

namespace ranks {

/// Waits in a thread for the last word of the next rank. If their connection breaks first, abandons
/// the transfers of `watched`; this rank then fails, which the previous rank notices in turn. All
/// ranks construct a FailureDetector at the same time.
class FailureDetector {
 public:
  FailureDetector(Gloo& gloo, Transport& watched)
      : gloo_(gloo), farewell_(gloo.expect_farewell()), thread_([this, &watched] {
          try {
            farewell_->wait();
          } catch (const std::exception& error) { watched.abandon(reason(error)); }
          const std::lock_guard lock(mutex_);
          ended_ = true;
          changed_.notify_all();
        }) {}
  ~FailureDetector() {
    farewell_->stop();
    thread_.join();
  }
  FailureDetector(FailureDetector&&) = delete;

  /// Tells the previous rank that this one ends as it should, and waits for the next rank's word
  /// for a short time.
  void leave() {
    constexpr std::chrono::seconds kPatience{5};
    try {
      gloo_.farewell();
    } catch (const std::exception&) {
      // It is gone.
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [this] { return ended_; });
  }

 private:
  Gloo& gloo_;
  std::unique_ptr<Gloo::Farewell> farewell_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;  // last member, because the thread uses the others
};

}  // namespace ranks
