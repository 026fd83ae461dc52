#pragma once
// One evaluation by several processes, each of which scores a part.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "infer/score/evaluation.h"
#include "infer/score/part_record.h"
#include "ranks/group.h"

namespace infer {

/// What is scored, how, and where the stores are.
struct SharedEvaluation {
  const EvaluationOptions& options;
  const std::set<std::string>& given;     ///< see Evaluation
  const std::vector<std::string>& files;  ///< shards that all ranks see
  bool own_stores = false;                ///< see shared_stores.h
};

/// Scores this rank's part of the shards; the first rank adds up all of them, to the bytes of one
/// process, and the others return nothing. All ranks call it; `progress` is told the part's tokens
/// so far, and about how many it has. Throws what Evaluation does and Error{usage} for stdin and
/// where ranks evaluate different things, on all ranks alike (but with stores of their own, where
/// the others hear of a rank that is gone), and Error{rank_lost}.
std::optional<PartsSum> score_together(
    const SharedEvaluation& what, std::shared_ptr<ranks::Group> group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress);

}  // namespace infer
