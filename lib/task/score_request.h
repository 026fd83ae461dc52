#pragma once
// What `score` is asked: texts, continuations of contexts, choices. One request a line.
//
//   a line of text, or a JSON object that is one of
//   {"id"?, "text"}
//   {"id"?, "context", "continuation"}
//   {"id"?, "context", "choices": [...], "gold"?}      gold: the number of the right one, from 0
//
// "messages", a conversation, may stand in the place of "context"; "special", true or false, says
// of a line whether texts of special tokens are these tokens.
//
// Other members are passed over.

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/line_reader.h"

namespace task {

struct ScoreRequest {
  enum class Kind { text, continuation, choices };
  std::string origin;             ///< file:line, for messages
  std::optional<std::string> id;  ///< JSON, as it was given
  Kind kind = Kind::text;
  std::string text;                        ///< the text, or the context
  std::vector<std::string> continuations;  ///< one, or the choices
  std::optional<std::size_t> gold;
  std::optional<std::string> messages;  ///< JSON, as it was given: the context is made of them
  std::optional<bool> special;
  std::string error;  ///< why it is no request: a sentence that names the origin; else empty
};

/// A line without its newline. What is wrong with it stands in `error`, its id is kept where it has
/// one.
ScoreRequest parse_score_request(const std::string& line, bool jsonl, const std::string& origin);

/// Requests out of files, one after the other; each as soon as its line is there. Not thread safe.
class ScoreRequestReader {
 public:
  /// `format`: lines, jsonl (empty lines are passed over), or auto: jsonl where a file's first line
  /// that is not empty begins with {. Files may be compressed. Lines of text that are not UTF-8 are
  /// errors. Throws Error{no_input} for the first
  /// file, next() for the others.
  ScoreRequestReader(std::vector<std::string> paths, std::string format);

  /// Nothing at the end. Throws Error{bad_data} for a line longer than 64 MiB and for a file that
  /// is named as JSON lines are but does not begin so, and as
  /// shard::open_unpacked() does.
  std::optional<ScoreRequest> next();
  /// Lines of text need not be UTF-8.
  void take_any_bytes() { any_bytes_ = true; }
  /// Whether the files are all there already: no pipe, no terminal.
  bool regular() const { return regular_; }
  /// Of all lines so far.
  core::Digest digest() const { return hasher_.digest(); }

 private:
  bool open();

  std::vector<std::string> paths_;
  std::string format_;
  bool regular_ = true, any_bytes_ = false;
  std::size_t opened_ = 0;
  std::optional<core::LineReader> lines_;
  std::optional<bool> jsonl_;         // of this file, once it is known
  std::deque<ScoreRequest> waiting_;  // empty lines before that: requests if it is text
  core::Hasher hasher_;
};

}  // namespace task
