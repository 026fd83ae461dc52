#pragma once
// Distributes one evaluation over several processes, each of which scores a part.

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

/// Inputs of a shared evaluation.
struct SharedEvaluation {
  const EvaluationOptions& options;
  const std::set<std::string>& given;     ///< see Evaluation
  const std::vector<std::string>& files;  ///< shards, visible to all ranks
  bool own_stores = false;                ///< datastores are distributed over ranks; see
                                          ///< shared_stores.h
  std::function<void(const std::string& note)> say = {};
};

/// Scores this rank's part of the shards. The first rank sums all parts, byte-identical to one
/// process; the others return nullopt. Collective; `progress` receives the part's tokens so far and
/// their approximate total. Throws the errors of Evaluation, and Error{usage} for stdin and for
/// ranks with different evaluations, on all ranks alike. With distributed datastores, other ranks
/// get Error{rank_lost} for what fails after the first search.
std::optional<PartsSum> score_together(
    const SharedEvaluation& what, std::shared_ptr<ranks::Group> group,
    const std::function<void(std::uint64_t done, std::uint64_t of)>& progress);

}  // namespace infer
