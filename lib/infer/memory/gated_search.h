#pragma once
// Stores, searched where a gate lets them be.

#include <vector>

#include "infer/memory/memory_plan.h"
#include "infer/memory/neighbours.h"

namespace infer {

/// What the stores of the plan gave, one for each nprobe, and for how many of R queries they were
/// searched.
struct Searched {
  std::vector<Neighbours> found;
  std::int64_t searched = 0;
};

/// queries (R, width). confidence (R, kConfidence), read where the plan's gate leaves searches out:
/// rows that it leaves out find nothing. `own`: see Stores::search().
Searched search_stores(const MemoryPlan& plan, const torch::Tensor& queries,
                       const torch::Tensor& confidence, const std::vector<std::int64_t>& nprobes,
                       const std::string& own = {});

}  // namespace infer
