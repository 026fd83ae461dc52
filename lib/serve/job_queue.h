#pragma once
// Queues completions for the one thread that generates them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "serve/completion.h"

namespace serve {

/// A CompletionJob is one request and its results so far. The client's thread waits for events; the
/// generating thread sends them. Thread safe.
class CompletionJob {
 public:
  /// An Event is one result.
  struct Event {
    enum class Kind { piece, choice, done, failed } kind;
    CompletionChoice choice = {};  ///< piece: index and text; choice: the whole choice
    CompletionUsage usage = {};    ///< done
    int status = 0;                ///< failed: the HTTP status; the choice's text is the message
  };

  explicit CompletionJob(CompletionRequest asked) : request(std::move(asked)) {}
  const CompletionRequest request;

  void send(Event event);
  void fail(int status, const std::string& text);
  /// Waits for the next event; returns nothing if `within` elapses first.
  std::optional<Event> next(std::chrono::milliseconds within);
  /// Marks the job as abandoned by its client.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  std::deque<Event> events_;
  std::atomic<bool> cancelled_ = false;
};
using JobPtr = std::shared_ptr<CompletionJob>;

/// A JobQueue holds the waiting jobs. Thread safe.
class JobQueue {
 public:
  explicit JobQueue(std::size_t most) : most_(most) {}
  /// Adds a job. Returns false if the queue is closed, or full of jobs that are not cancelled.
  bool push(JobPtr job);
  /// Removes and returns the oldest job that `fits`, which is asked about one job after the other;
  /// null: there is none. Discards cancelled jobs.
  JobPtr take(const std::function<bool(const CompletionRequest&)>& fits);
  /// Waits until there is a job, or until `within` elapses.
  void wait(std::chrono::milliseconds within);
  /// Closes the queue to further jobs.
  void close();
  bool closed() const;
  /// Returns the number of waiting jobs that are not cancelled.
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<JobPtr> jobs_;
  std::size_t most_;
  bool closed_ = false;
};

/// Returns the number of texts that a request asks for.
std::int64_t texts_of(const CompletionRequest& request);

}  // namespace serve
