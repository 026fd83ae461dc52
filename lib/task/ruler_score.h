#pragma once
// Scores answers as RULER does (Hsieh et al. 2024), by searching for strings.

#include "core/file_text.h"

namespace task {

/// Normalises a model's output: trims white space, replaces control characters by newlines, and
/// converts ASCII to lower case.
std::string ruler_said(std::string_view text);

/// Returns the fraction of `answers` that occur anywhere in the output, in lower case ("all":
/// needles and variables). With `any`, returns 1 if at least one occurs, else 0 ("any": documents).
double ruler_score(std::string_view text, const std::vector<std::string>& answers, bool any);

/// RulerAsked holds the part of a problem of gen-ruler that scoring needs.
struct RulerAsked {
  std::string task;
  std::int64_t length = 0;
  bool any = false;
  std::vector<std::string> answers;
};

/// Reads problems, keyed by the dump of their id. Throws Error{bad_data}, naming the line, for a
/// line that gen-ruler does not write and for a repeated id.
std::map<std::string, RulerAsked> read_ruler_problems(core::LineReader& lines);

/// A RulerScore sums scores by task and length.
class RulerScore {
 public:
  explicit RulerScore(std::map<std::string, RulerAsked> asked) : asked_(std::move(asked)) {}
  /// Adds a line of sample --json. Throws Error{bad_data} if it answers none of the problems.
  void add(std::string_view line, const std::string& origin);
  /// Throws Error{bad_data}, naming a problem, if a problem has no answer.
  void check_complete(const std::string& origin) const;
  /// total() and parts() return the number of problems and answers and the mean score in percent:
  /// total() for all, parts() for each task and length.
  core::OrderedJson total() const;
  std::vector<core::OrderedJson> parts() const;

 private:
  struct Sum {
    std::int64_t answers = 0;
    double score = 0;
  };
  std::map<std::string, RulerAsked> asked_;
  std::map<std::string, Sum> by_id_;
};

}  // namespace task
