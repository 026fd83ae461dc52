#pragma once
// Completions and chats as OpenAI's clients ask for them, and what they are answered: JSON in, JSON
// out.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"

namespace serve {

/// What a request may ask for at most.
struct CompletionLimits {
  std::int64_t max_tokens = 4096;  ///< of a text
  std::int64_t texts = 64;         ///< prompts times n
  std::int64_t likely = 20;        ///< words of each token, beside it
  std::int64_t stops = 16;
  std::int64_t chat_tokens = 256;  ///< of an answer, where the request does not say
};

/// A prompt: text, or the ids of its tokens.
struct CompletionPrompt {
  std::string text;
  std::optional<std::vector<std::int64_t>> tokens = {};
};

struct CompletionRequest {
  bool chat = false;
  std::string model;                      ///< as it was asked for; empty: it was not
  std::vector<CompletionPrompt> prompts;  ///< not of a chat
  std::string messages;                   ///< of a chat: JSON
  std::int64_t max_tokens = 16, n = 1;
  double temperature = 1, top_p = 1;
  std::int64_t top_k = 0;
  std::vector<std::string> stop;
  std::optional<std::uint64_t> seed;
  bool echo = false, stream = false, usage = false;  ///< usage: a stream ends with it
  std::optional<std::int64_t> logprobs;              ///< so many likely words of each token
  /// Options of memories that differ from the server's, as a JSON object; empty: none differ.
  std::string memory;
};

/// Throws HttpError 400 naming the member that is wrong, or that changes a text in a way that is
/// not known here. Others are passed over.
CompletionRequest parse_completion(const std::string& body, bool chat,
                                   const CompletionLimits& limits);

/// A token of a text, and what a model thinks of it.
struct CompletionToken {
  std::string text;
  std::optional<double> log_prob;  ///< nats; none: nothing stands before it
  std::vector<std::pair<std::string, double>> likely = {};  ///< the most probable words
};

/// A text of an answer.
struct CompletionChoice {
  std::int64_t index = 0;
  std::string text;    ///< with the prompt, where it is echoed
  std::string finish = {};  ///< "stop" or "length"
  std::optional<std::vector<CompletionToken>> tokens = {};
  core::OrderedJson extra = {};  ///< of Tessera: citations; null: nothing
};

struct CompletionUsage {
  std::int64_t prompt = 0, completion = 0;  ///< tokens
};

/// What all answers to one request have in common.
struct CompletionHead {
  std::string id, model;
  std::int64_t created = 0;  ///< seconds since 1970
  bool chat = false;
};

/// The whole answer.
core::OrderedJson completion_json(const CompletionHead& head,
                                  const std::vector<CompletionChoice>& choices,
                                  const CompletionUsage& usage);
/// An event of a stream: more of a text, or, with a `finish`, its end. `first`: of a chat's text.
core::OrderedJson completion_chunk(const CompletionHead& head, const CompletionChoice& piece,
                                   bool first);
/// The last one, where the request asked for it.
core::OrderedJson usage_chunk(const CompletionHead& head, const CompletionUsage& usage);
/// {"error": {"message", "type", "code"}} of an HTTP status.
core::OrderedJson error_json(int status, const std::string& text);

}  // namespace serve
