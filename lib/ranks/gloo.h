#pragma once
// c10d's Gloo: transfers tensors in host memory over TCP. The first transport of every run; what
// ranks agree on always goes over it.
// Notices that another rank is gone while this one waits for a device, which would wait for ever.

#include "core/launcher.h"
#include "ranks/transport.h"

namespace ranks {

class Gloo : public Transport {
 public:
  using Transport::Transport;

  /// Queues a word and a value for every rank but rank 0, whose call this is, and waits until they
  /// are sent.
  virtual void announce(std::int64_t word, std::int64_t value) = 0;
  /// Waits for rank 0's next announce().
  virtual void hear(std::int64_t& word, std::int64_t& value) = 0;

  /// A wait for the last word of the next rank (rank + 1, cyclically).
  class Farewell {
   public:
    virtual ~Farewell() = default;
    /// Returns when the word has come or stop() was called; throws std::exception as soon as the
    /// connection to that rank breaks.
    virtual void wait() = 0;
    /// Ends wait(); from another thread.
    virtual void stop() = 0;
  };
  /// Begins to wait for the next rank's farewell().
  virtual std::unique_ptr<Farewell> expect_farewell() = 0;
  /// Sends the last word to the previous rank, which has called expect_farewell().
  virtual void farewell() = 0;
};

/// Returns when all ranks have connected and authenticated one another; see Group::join().
std::unique_ptr<Gloo> join_gloo(
    const core::Launch& launch, const std::string& folder, std::chrono::milliseconds timeout);

/// Returns what is useful to a user of the text of c10d's exception.
std::string reason(const std::exception& error);

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
