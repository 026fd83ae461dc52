#pragma once
// Completions that wait for the one thread that makes them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/completion.h"

namespace serve {

/// One request and what has come of it so far. The client's thread waits; the maker's tells. Thread
/// safe.
class CompletionJob {
 public:
  /// What the maker tells.
  struct Event {
    enum class Kind { piece, choice, done, failed } kind;
    CompletionChoice choice = {};  ///< piece: index and text; choice: all of it
    CompletionUsage usage = {};    ///< done
    int status = 0;                ///< failed, with the choice's text
  };

  explicit CompletionJob(CompletionRequest asked) : request(std::move(asked)) {}
  const CompletionRequest request;

  void tell(Event event);
  void fail(int status, const std::string& text);
  /// The next event; none within that time.
  std::optional<Event> next(std::chrono::milliseconds within);
  /// Nobody waits any more.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::deque<Event> events_;
  std::atomic<bool> cancelled_ = false;
};
using JobPtr = std::shared_ptr<CompletionJob>;

/// Thread safe.
class JobQueue {
 public:
  explicit JobQueue(std::size_t most) : most_(most) {}
  /// False: it is full, or closed.
  bool push(JobPtr job);
  /// Those that can be made together with the first, in their order, up to `most` texts; waits for
  /// one. None: nothing came within that time. Those that were cancelled are passed over.
  std::vector<JobPtr> next(std::int64_t most, std::chrono::milliseconds within);
  /// Takes no more.
  void close();
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<JobPtr> jobs_;
  std::size_t most_;
  bool closed_ = false;
};

/// Texts that a request asks for.
std::int64_t texts_of(const CompletionRequest& request);

}  // namespace serve
