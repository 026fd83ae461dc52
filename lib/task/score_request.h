#pragma once
// Reads the requests of `score`: texts, continuations of contexts, choices. Each line is one
// request:
//
//   a line of text, or a JSON object of one of these forms
//   {"id"?, "text"}
//   {"id"?, "context", "continuation"}
//   {"id"?, "context", "choices": [...], "gold"?}      gold: index of the correct choice, from 0
//
// "messages", a conversation, may replace "context". "special", true or false, says for a line
// whether texts of special tokens are encoded as these tokens. Other members are ignored.
// Selects a model's answer among several choices, by each of the common rules.
// Computes the accuracy of answers and its confidence interval.

#include "core/file_text.h"
#include "core/hash.h"

namespace task {

/// A ChoiceScore holds the log-probability and the length of one choice.
struct ChoiceScore {
  double log_prob = 0;  ///< nats, given the question
  std::int64_t tokens = 0, bytes = 0;
  /// Nats, given the context that all questions of the domain share.
  std::optional<double> domain_log_prob;
};

/// Returns, for each rule, the index of the best choice; the first wins a tie. The rules, in order:
///   sum                 log p
///   byte                log p per byte
///   token               log p per token
///   mutual_information  log p minus log p given the domain's context (Holtzman et al. 2021),
///                       if all choices have one
std::vector<std::pair<std::string, std::size_t>> predict(const std::vector<ChoiceScore>& choices);

/// Accuracy is the fraction of correct answers with its 95 % interval (Wilson 1927). The interval
/// is never empty and stays within 0 and 1 for any number of answers; a single question has none.
struct Accuracy {
  double share = 0;
  std::optional<double> low, high;
};

/// Returns the accuracy of at least one answer.
Accuracy accuracy(const std::vector<bool>& right);

/// A ScoreRequest is one parsed line.
struct ScoreRequest {
  enum class Kind { text, continuation, choices };
  std::string origin;             ///< file:line, for messages
  std::optional<std::string> id;  ///< JSON, unchanged
  Kind kind = Kind::text;
  std::string text;                        ///< the text, or the context
  std::vector<std::string> continuations;  ///< one continuation, or the choices
  std::optional<std::size_t> gold;
  std::optional<std::string> messages;  ///< JSON, unchanged; the context is made from it
  std::optional<bool> special;
  /// Why the line is invalid, a sentence that names the origin; else empty.
  std::string error;
};

/// Parses a line without its newline. Reports an invalid line in `error` and keeps its id, if it
/// has one.
ScoreRequest parse_score_request(const std::string& line, bool jsonl, const std::string& origin);

/// A ScoreRequestReader reads requests from files in sequence, each as soon as its line is
/// available. Not thread safe.
class ScoreRequestReader {
 public:
  /// `format` is lines, jsonl (empty lines are skipped) or auto, which means jsonl if the first
  /// non-empty line of a file begins with {. Files may be compressed. A line of text that is not
  /// UTF-8 is an error. Throws Error{no_input} for the first file; next() throws it for the others.
  ScoreRequestReader(std::vector<std::string> paths, std::string format);

  /// Returns the next request, or nothing at the end. Throws Error{bad_data} for a line longer than
  /// 64 MiB and for a file whose name but not whose content says JSON lines; throws as
  /// shard::open_unpacked() does.
  std::optional<ScoreRequest> next();
  /// Accepts lines of text that are not UTF-8.
  void take_any_bytes() { any_bytes_ = true; }
  /// Returns true if no file is a pipe or a terminal, so that all lines are already present.
  bool regular() const { return regular_; }
  /// Returns the digest of all lines so far.
  core::Digest digest() const { return hasher_.digest(); }

 private:
  bool open();

  std::vector<std::string> paths_;
  std::string format_;
  bool regular_ = true, any_bytes_ = false;
  std::size_t opened_ = 0;
  std::optional<core::LineReader> lines_;
  std::optional<bool> jsonl_;  // of this file, once determined
  // Leading empty lines, which are requests if the file is text.
  std::deque<ScoreRequest> waiting_;
  core::Hasher hasher_;
};

}  // namespace task
