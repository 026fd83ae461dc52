#pragma once
// Parses completion and chat requests of OpenAI's clients and writes their responses, in JSON.

#include "core/json.h"

namespace serve {

/// CompletionLimits bounds what a request may ask for.
struct CompletionLimits {
  std::int64_t max_tokens = 4096;  ///< per text
  std::int64_t texts = 64;         ///< number of prompts times n
  std::int64_t likely = 20;        ///< number of alternatives per token
  std::int64_t stops = 16;
  std::int64_t chat_tokens = 256;  ///< tokens of an answer if the request sets no limit
  std::int64_t scored = 256'000;   ///< prompt tokens with log-probabilities, times n
};

/// A CompletionPrompt is text, or the ids of its tokens.
/// encode_prompts() gives a text its tokens.
struct CompletionPrompt {
  std::string text;
  std::vector<std::int64_t> tokens = {};
  std::int64_t before = 0;  ///< number of tokens before those of the text
};

/// A CompletionRequest is a parsed request.
struct CompletionRequest {
  bool chat = false;
  std::string model;                      ///< as requested; empty: not given
  std::vector<CompletionPrompt> prompts;  ///< empty for a chat
  std::string messages;                   ///< JSON, for a chat
  core::OrderedJson retrieved = {};       ///< passages in a chat's turn; null: not asked for
  std::int64_t max_tokens = 16, n = 1;
  double temperature = 1, top_p = 1;
  std::int64_t top_k = 0;  ///< 0: all
  double presence_penalty = 0, frequency_penalty = 0, repetition_penalty = 1;
  std::vector<std::pair<std::int64_t, double>> biases;  ///< added to the logits of tokens
  std::vector<std::int64_t> allowed;                    ///< the only tokens; empty: all
  std::vector<std::string> stop;
  std::optional<std::uint64_t> seed;
  /// begins: the BOS token precedes texts, in a chat not by default, because its template writes
  /// it. parses: special tokens in texts are these tokens.
  bool begins = true, parses = true;
  /// usage: a stream ends with the usage.
  bool echo = false, stream = false, usage = false;
  std::optional<std::int64_t> logprobs;  ///< number of alternatives per token
  /// Memory options that differ from the server's, as a JSON object; empty: none.
  std::string memory;
};

/// Parses a request. Throws HttpError 400, naming the member, for an invalid member and for one
/// that Members::refuse_others() refuses. More tokens than limits.max_tokens become this number.
CompletionRequest parse_completion(
    const std::string& body, bool chat, const CompletionLimits& limits);

/// A CompletionToken is a token of a text with its log-probability.
struct CompletionToken {
  std::string text;
  std::optional<double> log_prob;  ///< nats; unset: nothing precedes the token
  std::vector<std::pair<std::string, double>> likely = {};  ///< the most probable tokens
  std::int64_t offset = 0;  ///< characters of the choice's whole text before it
};

/// A CharacterCount counts the characters of a text, as clients receive it: each part that is not
/// UTF-8 is one U+FFFD.
class CharacterCount {
 public:
  /// Returns how many characters end at or before byte `byte` of a text. From call to call, the
  /// text may grow and `byte` must not decrease.
  std::int64_t before(std::string_view text, std::size_t byte);

 private:
  std::size_t at_ = 0;
  std::int64_t characters_ = 0;
};

/// A CompletionChoice is one text of a response.
struct CompletionChoice {
  std::int64_t index = 0;
  std::string text;         ///< including the prompt, if echoed
  std::string finish = {};  ///< "stop" or "length"
  std::optional<std::vector<CompletionToken>> tokens = {};
  core::OrderedJson extra = {};  ///< Tessera's extension: citations, memories; null: none
};

struct CompletionUsage {
  std::int64_t prompt = 0, completion = 0;  ///< tokens
  std::int64_t reused = 0;                  ///< tokens of prompts that were computed before
};

/// A CompletionHead holds what all responses to one request share.
struct CompletionHead {
  std::string id, model;
  std::int64_t created = 0;  ///< Unix time in seconds
  bool chat = false;
};

/// Returns the whole response.
core::OrderedJson completion_json(const CompletionHead& head,
    const std::vector<CompletionChoice>& choices, const CompletionUsage& usage);
/// Returns an event of a stream: more text or, with a `finish`, its end. `first` marks the first
/// event of a chat's text.
core::OrderedJson completion_chunk(
    const CompletionHead& head, const CompletionChoice& piece, bool first);
/// Returns the last event of a stream, if the request asked for the usage.
core::OrderedJson usage_chunk(const CompletionHead& head, const CompletionUsage& usage);
/// Returns {"error": {"message", "type", "code"}} for an HTTP status.
core::OrderedJson error_json(int status, const std::string& text);

}  // namespace serve
