#pragma once
// What RULER makes of answers (Hsieh et al. 2024): strings that are there or not.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/line_reader.h"

namespace task {

/// What a model said, without white space around it, control characters as newlines, in lower case
/// (of ASCII).
std::string ruler_said(std::string_view text);

/// The share of `answers` that stand in what was said, anywhere, in lower case: "all", of needles
/// and variables. Or 1 if any of them does, else 0: "any", of documents.
double ruler_score(std::string_view text, const std::vector<std::string>& answers, bool any);

/// What gen-ruler wrote of a problem, and what is needed to score it.
struct RulerAsked {
  std::string task;
  std::int64_t length = 0;
  bool any = false;
  std::vector<std::string> answers;
};

/// Problems by the dump of their id. Throws Error{bad_data} naming the line: no JSON object of
/// gen-ruler's, or an id that was there before.
std::map<std::string, RulerAsked> read_ruler_problems(core::LineReader& lines);

/// Sums of scores by task and length, as they are added.
class RulerScore {
 public:
  explicit RulerScore(std::map<std::string, RulerAsked> asked) : asked_(std::move(asked)) {}
  /// A line of sample --json. Throws Error{bad_data} if it answers nothing that was asked.
  void add(std::string_view line, const std::string& origin);
  /// Throws Error{bad_data} naming a problem without an answer.
  void check_complete(const std::string& origin) const;
  /// Problems, answers, and the mean of the scores in percent: of all, and of each task and length.
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
