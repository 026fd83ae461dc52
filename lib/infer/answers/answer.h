#pragma once
// Answer to a score request: a JSON line.
// Token sequences to score, and their scores.

#include "infer/memory/cite.h"
#include "task/score_request.h"

namespace infer {

/// A context with alternative continuations. A text is represented with its first token, or the BOS
/// token, as context and the other tokens as continuation.
struct Passage {
  std::vector<std::int64_t> context;                     ///< not empty
  std::vector<std::vector<std::int64_t>> continuations;  ///< not empty, except for a text
  /// A text is scored by sliding windows. Otherwise the beginning of the context is cut if the
  /// context and the longest continuation exceed the window.
  bool text = false;
};

/// Additional information about a token.
struct TokenDetails {
  std::int64_t rank = 0;                                ///< number of more probable tokens
  std::vector<std::pair<std::int64_t, double>> likely;  ///< most probable tokens, with
                                                        ///< log-probabilities
  std::vector<double> shares;                           ///< contributions to its probability, by
                                                        ///< MemoryPlan::names()
};

/// Requested outputs beside scores.
struct TokenWants {
  const Citer* citer = nullptr;  ///< null: no citations
  bool details = false;
  std::int64_t likely = 0;        ///< number of tokens in TokenDetails
  bool hidden = false;            ///< returns f instead of scores
  shard::Fingerprints skip = {};  ///< of texts whose datastore entries are excluded
};

/// Scores of the tokens, in order.
struct TokenScores {
  std::vector<double> log_prob;       ///< nats
  std::vector<bool> best;             ///< no token had a higher probability
  std::vector<CitedToken> cited;      ///< if requested
  std::vector<TokenDetails> details;  ///< if requested
  std::vector<torch::Tensor> hidden;  ///< f in pieces (n, d), if requested instead of scores
  /// Passages retrieved for the tokens: {token, passages} for each search.
  core::OrderedJson retrieved = core::OrderedJson::array();

  double sum() const { return std::accumulate(log_prob.begin(), log_prob.end(), 0.0); }
  /// Returns whether every token was the most probable.
  bool greedy() const { return std::find(best.begin(), best.end(), false) == best.end(); }
};

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
