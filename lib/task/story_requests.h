#pragma once
// Writes the requests of a batch of chat completions, and reads the openings of their answers.
// Writes the questions of gen-babistories-prompts according to options.

#include "core/hash.h"
#include "core/io.h"
#include "core/options.h"
#include "task/story_prompts.h"

namespace task {

/// A StoryRequest is a line of a batch file. `begun` is the beginning of the answer, which is the
/// last message and has the assistant's role; empty: the answer has none.
struct StoryRequest {
  std::string id, model, instruction, begun;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  core::OrderedJson json() const;
};

/// AnswerOpenings maps the custom_id of each request to the opening of its answer: if the last
/// message of a request is the assistant's, the answer continues it. Takes 24 bytes per request,
/// and each distinct opening once.
class AnswerOpenings {
 public:
  /// Represents a file without requests: no answer has an opening.
  AnswerOpenings() = default;
  /// Reads a batch file. Throws Error{bad_data}, naming file and line for an invalid request, or
  /// the file for a custom_id with two openings.
  explicit AnswerOpenings(core::ByteSource& requests);
  AnswerOpenings(AnswerOpenings&&) = delete;

  /// Returns the opening of an answer, a line of the server's output; empty if it has none. Throws
  /// Error{bad_data}, with `origin` in front, if no request has its custom_id.
  const std::string& of(const core::Json& answer, const std::string& origin) const;

 private:
  struct Request {
    core::Digest id;
    const std::string* opening;  // points into distinct_
  };
  void sort();

  std::string file_;  // empty: no requests
  std::unordered_set<std::string> distinct_;
  std::vector<Request> requests_;  // by id
};

/// StoryQuestionOptions says what is asked and how it is written.
struct StoryQuestionOptions {
  std::int64_t n = 1000, first = 0;
  std::string ask = "story", words, names, openings, opening_in = "instruction", form = "json";
  std::string request = "none", model;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  void fields(core::FieldList& f);
  /// Throws Error{usage} for options that cannot be combined.
  void check() const;
};

/// Returns the parts of stories: the lists that the options name, else our own. Lists may be
/// compressed. Throws as the functions that read them do.
StoryParts story_parts(const StoryQuestionOptions& options);

/// Returns question `number` of a seed, without a newline: JSON with its parts, only the text, or a
/// request of a chat-completion batch.
std::string story_question(const StoryQuestionOptions& options, const StoryParts& parts,
    std::int64_t seed, std::int64_t number);

}  // namespace task
