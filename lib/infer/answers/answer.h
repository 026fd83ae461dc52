#pragma once
// Answer to a score request: a JSON line.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "infer/answers/passage.h"
#include "task/choice_rules.h"
#include "task/score_request.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// A scored text: a continuation, a choice, or a whole text.
struct ScoredText {
  std::int64_t bytes = 0;            ///< of the scored tokens
  std::vector<std::int64_t> tokens;  ///< scored tokens
  TokenScores scores;
};

/// A scored choice: the likeliest text if it has synonyms, and their total probability.
struct ScoredChoice {
  ScoredText text;
  double log_prob = 0;
  std::optional<double> domain_log_prob;  ///< given the domain context
};

struct Answer {
  std::optional<std::string> id;  ///< JSON of the request's id
  std::string error;              ///< not empty: the request failed
  task::ScoreRequest::Kind kind = task::ScoreRequest::Kind::text;
  std::vector<ScoredChoice> choices;  ///< one element, except for requests with choices
  std::optional<std::size_t> gold;

  /// Returns the scores of the choices for the prediction rules.
  std::vector<task::ChoiceScore> choice_scores() const;
};

/// Formats an answer as a JSON line with its newline: {"id", "log_prob", "tokens", "bytes",
/// "greedy"}, plus "per_token" with `per_token`, "citations" with citations, "retrieved" with
/// retrieved passages. For choices: {"id", "choices", "prediction", "gold", "correct"}. For errors:
/// {"id", "error"}. Absent members are omitted.
std::string json_line(const Answer& answer, const text::Tokenizer& tokenizer, bool per_token);

}  // namespace infer
