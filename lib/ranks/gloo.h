#pragma once
// c10d's Gloo: transfers tensors in host memory over TCP. The first transport of every run; what
// ranks agree on always goes over it.

#include <atomic>

#include "core/launcher.h"
#include "ranks/transport.h"

namespace ranks {

class Gloo : public Transport {
 public:
  using Transport::Transport;

  /// Queues a word and a value for every rank but rank 0, whose call this is, and waits until they
  /// are sent.
  virtual void tell(std::int64_t word, std::int64_t value) = 0;
  /// Waits for rank 0's next tell().
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

}  // namespace ranks
