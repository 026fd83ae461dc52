#pragma once
// Computes the accuracy of answers and its confidence interval.

#include <optional>
#include <vector>

namespace task {

/// Accuracy is the fraction of correct answers with its 95 % interval (Wilson 1927). The interval
/// is never empty and stays within 0 and 1 for any number of answers; a single question has none.
struct Accuracy {
  double share = 0;
  std::optional<double> low, high;
};

/// Returns the accuracy of at least one answer.
Accuracy accuracy(const std::vector<bool>& right);

}  // namespace task
