// Any body from a client is a request within the limits, or is refused with 400.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/target.h"
#include "serve/completion.h"
#include "serve/http_request.h"
#include "serve/job_queue.h"

FUZZ_TARGET(completion)(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  const serve::CompletionLimits limits;
  for (const bool chat : {false, true}) {
    try {
      const auto request = serve::parse_completion(body, chat, limits);
      if (request.max_tokens < 0 || request.max_tokens > limits.max_tokens) std::abort();
      if (request.n < 1 || serve::texts_of(request) > limits.texts) std::abort();
      if (request.top_k < 0 || !(request.repetition_penalty > 0)) std::abort();
      if (!(request.top_p > 0 && request.top_p <= 1) || !(request.temperature >= 0)) std::abort();
      if (request.logprobs.value_or(0) > limits.likely) std::abort();
      if (chat ? request.messages.empty() : request.prompts.empty()) std::abort();
      for (const auto& stop : request.stop)
        if (stop.empty()) std::abort();
    } catch (const serve::HttpError& error) {
      if (error.status() != 400) std::abort();
    }
  }
}
