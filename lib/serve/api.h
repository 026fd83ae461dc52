#pragma once
// The paths that `serve` answers: what stands between HTTP and the queue of completions.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "serve/completion.h"
#include "serve/http_server.h"
#include "serve/job_queue.h"

namespace serve {

/// What /metrics tells. Thread safe.
struct ServeCounts {
  std::atomic<std::uint64_t> requests = 0, refused = 0, failed = 0, left = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0, completion_tokens = 0, texts = 0;
  std::atomic<std::uint64_t> busy_microseconds = 0;
};

struct ApiOptions {
  std::string model;       ///< its name for clients
  std::string key;         ///< asked for in Authorization: Bearer; empty: none
  bool local_only = true;  ///< Host has to name this machine, against pages that rebind their name
  bool chat = false;       ///< the model has a chat template
  bool cite = false;       ///< answers have citations
  CompletionLimits limits;
};

/// Answers
///   GET /                          a page on which a person asks
///   GET /health                    {"status": "ok"}
///   GET /v1/models                 the model, in a list
///   GET /metrics                   Prometheus' text form
///   POST /v1/completions           CompletionRequest, answered by whoever takes from the queue
///   POST /v1/chat/completions
/// and 404 to everything else. Thread safe.
class Api {
 public:
  Api(ApiOptions options, JobQueue& queue, ServeCounts& counts);
  /// Throws HttpError.
  void answer(const HttpRequest& request, HttpAnswer& answer);
  /// The body of a refusal.
  std::string refusal(int status, const std::string& text);

 private:
  void check(const HttpRequest& request) const;
  void complete(const HttpRequest& request, bool chat, HttpAnswer& answer);
  void whole(CompletionJob& job, CompletionHead head, HttpAnswer& answer);
  void stream(CompletionJob& job, CompletionHead head, HttpAnswer& answer);
  std::optional<CompletionJob::Event> wait(CompletionJob& job, const HttpAnswer& answer);
  std::string models() const;
  std::string metrics() const;

  ApiOptions options_;
  JobQueue& queue_;
  ServeCounts& counts_;
  std::int64_t started_;  // seconds since 1970
  std::atomic<std::uint64_t> number_ = 0;
};

}  // namespace serve
