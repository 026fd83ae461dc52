#pragma once
// Figures of all answers together.

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

  /// {"requests", "errors", "loss", "perplexity", "bits_per_byte", "tokens", "bytes", "questions",
  /// and where there are any, "greedy" and each rule, with "_low" and "_high" of the interval}:
  /// the first are those of texts and continuations, greedy is the share of the continuations that
  /// greedy decoding would have said, a rule's figure the share of the questions with a gold choice
  /// that it answers rightly.
  core::OrderedJson figures() const;
  /// The same in a line.
  std::string summary() const;

 private:
  std::vector<std::pair<std::string, task::Accuracy>> accuracies() const;

  std::uint64_t requests_ = 0, errors_ = 0, questions_ = 0;
  Totals totals_;
  std::vector<bool> greedy_;                                      // of each continuation
  std::vector<std::pair<std::string, std::vector<bool>>> right_;  // by each rule
};

}  // namespace infer
