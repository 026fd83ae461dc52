#pragma once
// Aggregate statistics over all answers.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "infer/answers/answer.h"
#include "infer/score/totals.h"
#include "task/accuracy.h"

namespace infer {

class AnswerTotals {
 public:
  void add(const Answer& answer);
  std::uint64_t requests() const { return requests_; }
  std::uint64_t errors() const { return errors_; }

  /// Returns {"requests", "errors", "loss", "perplexity", "bits_per_byte", "tokens", "bytes",
  /// "questions", and, if applicable, "greedy" and each rule, with "_low" and "_high" of the
  /// confidence interval}. Loss to bytes cover texts and continuations. "greedy" is the fraction of
  /// continuations that greedy decoding would produce. A rule's value is the fraction of questions
  /// with a gold choice that the rule answers correctly.
  core::OrderedJson figures() const;
  /// Returns the statistics as one line of text.
  std::string summary() const;

 private:
  std::vector<std::pair<std::string, task::Accuracy>> accuracies() const;

  std::uint64_t requests_ = 0, errors_ = 0, questions_ = 0;
  Totals totals_;
  std::vector<bool> greedy_;                                      // of each continuation
  std::vector<std::pair<std::string, std::vector<bool>>> right_;  // by rule
};

}  // namespace infer
