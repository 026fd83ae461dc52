#pragma once
// Stores, searched where a gate lets them be and where nothing can be followed.

#include <string>
#include <vector>

#include "infer/memory/follow.h"
#include "infer/memory/memory_plan.h"
#include "infer/stores/neighbours.h"

namespace infer {

/// R queries as stretches of text, each of which begins without pointers.
struct Stretches {
  torch::Tensor targets;              ///< (R) int64, CPU: what came next
  std::vector<std::int64_t> lengths;  ///< R together
};

/// What the stores of the plan gave, one for each nprobe, and how they were asked the first time.
struct Searched {
  std::vector<Neighbours> found;
  SearchCounts counts;
};

/// queries (R, width). confidence (R, kConfidence), read where the plan's gate leaves searches out:
/// rows that it leaves out find nothing. `stretches`, where the plan follows. `own`: see
/// Stores::search().
Searched search_stores(const MemoryPlan& plan, const torch::Tensor& queries,
                       const torch::Tensor& confidence, const Stretches& stretches,
                       const std::vector<std::int64_t>& nprobes,
                       const shard::Fingerprints& own = {});
/// (R) bool: whether the plan's gate lets them be searched; undefined: it leaves out none.
torch::Tensor allowed_searches(const MemoryPlan& plan, const torch::Tensor& confidence);

}  // namespace infer
