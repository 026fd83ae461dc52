#pragma once
// What a request is answered: a JSON line.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "infer/answers/passage.h"
#include "task/choice_rules.h"
#include "task/score_request.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// A text that was scored: a continuation, a choice, or a whole one.
struct ScoredText {
  std::int64_t bytes = 0;            ///< of what is scored
  std::vector<std::int64_t> tokens;  ///< of the same
  TokenScores scores;
};

/// Of a choice. Where synonyms stand for it, what they have together, and the text of the
/// likeliest.
struct ScoredChoice {
  ScoredText text;
  double log_prob = 0;
  std::optional<double> domain_log_prob;  ///< behind the domain's context
};

struct Answer {
  std::optional<std::string> id;  ///< JSON, as it was given
  std::string error;              ///< not empty: there is no answer
  task::ScoreRequest::Kind kind = task::ScoreRequest::Kind::text;
  std::vector<ScoredChoice> choices;  ///< one, unless choices were asked for
  std::optional<std::size_t> gold;

  /// Of the choices, for the rules.
  std::vector<task::ChoiceScore> choice_scores() const;
};

/// A line with its newline: {"id", "log_prob", "tokens", "bytes", "greedy"}, with `per_token`
/// "per_token", with citations "citations", behind passages "retrieved"; of choices {"id",
/// "choices", "prediction", "gold", "correct"}; or {"id", "error"}. What was not given, or not
/// asked for, is left out.
std::string json_line(const Answer& answer, const text::Tokenizer& tokenizer, bool per_token);

}  // namespace infer
