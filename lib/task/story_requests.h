#pragma once
// A batch of chat completions: its requests, and what the answers go on from.

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "core/json.h"

namespace task {

/// A line of a batch file. `begun`: what the answer begins with, the last message and the
/// assistant's; empty: it begins by itself.
struct StoryRequest {
  std::string id, model, instruction, begun;
  double temperature = 1;
  std::int64_t max_tokens = 512;
  core::OrderedJson json() const;
};

/// The openings of answers, by custom_id: a request whose last message is the assistant's is
/// answered by what follows that message. Holds 24 bytes a request, and each opening once.
class AnswerOpenings {
 public:
  /// Of no requests: no answer has an opening.
  AnswerOpenings() = default;
  /// Of a batch file. Throws Error{bad_data} naming file and line for what is no request, or the
  /// file for one custom_id with two openings.
  explicit AnswerOpenings(core::ByteSource& requests);
  AnswerOpenings(const AnswerOpenings&) = delete;
  AnswerOpenings& operator=(const AnswerOpenings&) = delete;

  /// Empty if the answer, a line of the server's, begins by itself. Throws Error{bad_data} that
  /// begins with `origin` where none of the requests has its custom_id.
  const std::string& of(const core::Json& answer, const std::string& origin) const;

 private:
  struct Request {
    core::Digest id;
    const std::string* opening;  // in distinct_
  };
  void sort();

  std::string file_;  // empty: of no requests
  std::unordered_set<std::string> distinct_;
  std::vector<Request> requests_;  // by id
};

}  // namespace task
