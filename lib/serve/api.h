#pragma once
// Answers the paths of `serve`: connects HTTP to the queue of completions.
// Declares the contents of ask.html, the page at /, which the build embeds.

#include "serve/http_server.h"
#include "serve/job_queue.h"
#include "serve/token_api.h"

namespace serve {

extern const std::string_view kAskPage;

/// ServeCounts holds the counters that /metrics reports. Thread safe.
struct ServeCounts {
  std::atomic<std::uint64_t> requests = 0, refused = 0, failed = 0, left = 0;
  std::atomic<std::uint64_t> prompt_tokens = 0, completion_tokens = 0, texts = 0, reused_tokens = 0;
  std::atomic<std::uint64_t> busy_microseconds = 0, running = 0;
  /// When the last large request ended, in steady_seconds().
  std::atomic<std::int64_t> large_ended = INT64_MIN / 2;
};
/// Returns the seconds of a clock that is never set.
std::int64_t steady_seconds();

/// ApiOptions holds the settings of the API.
struct ApiOptions {
  std::string model;  ///< its name for clients
  std::string key;    ///< required in Authorization: Bearer; empty: none
  /// Requires that Host names this machine, as protection against DNS rebinding.
  bool local_only = true;
  bool cite = false;  ///< answers include citations
  /// Origins of pages that may ask from elsewhere (CORS); "*": any.
  std::vector<std::string> origins = {};
  CompletionLimits limits;
  /// Bytes of the tokenizer's answers of more than 64 KiB that are not sent yet; a further one gets
  /// 503.
  std::size_t answer_bytes = std::size_t{64} << 20;
  ServedTokenizer tokens;  ///< without a tokenizer, its paths return 404
};

/// An Api answers these requests, OPTIONS of their paths, and everything else with 404. Thread
/// safe.
///   GET /                          a page with a form for questions
///   GET /health                    {"status": "ok"}
///   GET /v1/models                 a list with the model
///   GET /v1/models/NAME            the model
///   GET /metrics                   Prometheus' text format
///   POST /v1/completions           a CompletionRequest, which goes to the queue
///   POST /v1/chat/completions      likewise, for a chat
///   GET /tokenizer_info            see serve::tokenizer_info()
///   POST /tokenize, /detokenize    see serve::tokenize(), serve::detokenize()
class Api {
 public:
  Api(ApiOptions options, JobQueue& queue, ServeCounts& counts);
  /// Answers one request. Throws HttpError.
  void answer(HttpRequest& request, HttpAnswer& answer);
  /// Returns the body of an error response.
  std::string refusal(int status, const std::string& text);

 private:
  bool allows(std::string_view origin) const;
  void check(const HttpRequest& request, HttpAnswer& answer) const;
  void options(const std::string& methods, const HttpRequest& request, HttpAnswer& answer) const;
  std::unique_lock<std::mutex> turn_of(const HttpRequest& request, std::size_t small);
  void answer_tokens(const HttpRequest& request, HttpAnswer& answer);
  CompletionRequest parse(HttpRequest& request, bool chat);
  void complete(HttpRequest& request, bool chat, HttpAnswer& answer);
  void whole(CompletionJob& job, CompletionHead head, HttpAnswer& answer);
  void stream(CompletionJob& job, CompletionHead head, HttpAnswer& answer);
  std::optional<CompletionJob::Event> wait(CompletionJob& job, const HttpAnswer& answer);
  core::OrderedJson model() const;
  std::string models(std::string_view path) const;
  std::string metrics() const;

  ApiOptions options_;
  JobQueue& queue_;
  ServeCounts& counts_;
  std::int64_t started_;  // Unix time in seconds
  std::atomic<std::uint64_t> number_ = 0;
  std::mutex large_;                      // held while a large body is parsed and answered
  std::atomic<std::size_t> sending_ = 0;  // bytes of large answers
};

}  // namespace serve
