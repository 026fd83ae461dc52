#pragma once
// Selects a model's answer among several choices, by each of the common rules.
// Computes the accuracy of answers and its confidence interval.

#include "core/base.h"

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

}  // namespace task
