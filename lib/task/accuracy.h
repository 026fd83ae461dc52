#pragma once
// How many of several answers are right, and how far chance could move that.

#include <optional>
#include <vector>

namespace task {

/// The share that is right, with its 95 % interval (Wilson 1927), which is neither empty nor beyond
/// 0 and 1 however few answers there are; none where there is one question alone.
struct Accuracy {
  double share = 0;
  std::optional<double> low, high;
};

/// At least one answer.
Accuracy accuracy(const std::vector<bool>& right);

}  // namespace task
