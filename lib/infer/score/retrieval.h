#pragma once
// Measures how often the next token is the label of one of the k nearest datastore entries.

#include <cstdint>
#include <vector>

#include "core/json.h"
#include "infer/score/scorer.h"

namespace infer {

/// A Retrieval counts how many labels were among the nearest entries of the scores passed to add().
class Retrieval {
 public:
  /// `at`: numbers of neighbours, each from 1 to `k` of the search (0: no search). Throws
  /// Error{usage}.
  Retrieval(std::vector<std::int64_t> at, std::int64_t k);
  void add(const Scored& scored);
  /// Returns [{"k", "share"}, ...] in the requested order.
  core::OrderedJson figures() const;

 private:
  std::vector<std::int64_t> at_, found_;
  std::int64_t tokens_ = 0;
};

}  // namespace infer
