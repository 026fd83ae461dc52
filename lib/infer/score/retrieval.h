#pragma once
// How often the stores find the token that follows: is it the label of one of the k nearest?

#include <cstdint>
#include <vector>

#include "core/json.h"
#include "infer/score/scorer.h"

namespace infer {

/// Counts over what add() is given.
class Retrieval {
 public:
  /// `at`: numbers of neighbours, each 1 to the `k` of the search; 0: there is none. Throws
  /// Error{usage}.
  Retrieval(std::vector<std::int64_t> at, std::int64_t k);
  void add(const Scored& scored);
  /// [{"k", "share"}, ...] in the order asked for.
  core::OrderedJson figures() const;

 private:
  std::vector<std::int64_t> at_, found_;
  std::int64_t tokens_ = 0;
};

}  // namespace infer
