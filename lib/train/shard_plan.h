#pragma once
// Memory of each process of a run, by what the processes share out.

#include <cstdint>
#include <vector>

#include "core/json.h"
#include "nn/base/torch.h"
#include "ranks/group.h"
#include "train/optimiser.h"
#include "train/train_options.h"

namespace train {

/// A step, as far as memory depends on it.
struct StepShape {
  std::int64_t leaves;  ///< micro-batches (columns: of batch shards) of all processes
  ranks::Sum how;
  bool carries;  ///< rows continue one another, so that a process has neighbouring micro-batches
};

/// Bytes of the process that has most.
struct RankBytes {
  std::int64_t weights, gradients, optimiser;
};

/// Returns the bytes of weights, gradients and moments at the end of a backward pass, when most are
/// in memory, with what is sent at that time. `blocks`: weights of each block, for
/// Sharded::weights. float32 throughout.
RankBytes rank_bytes(const NamedWeights& weights,
                     const std::vector<std::vector<torch::Tensor>>& blocks,
                     const OptimiserOptions& options, const StepShape& step, std::int64_t ranks,
                     Sharded sharded);

/// Returns rows {"ranks", "shard", "weights_bytes", "gradient_bytes", "optimiser_bytes"} for 2, 4
/// and 8 processes and all that they can share out.
std::vector<core::OrderedJson> shard_table(const NamedWeights& weights,
                                           const std::vector<std::vector<torch::Tensor>>& blocks,
                                           const OptimiserOptions& options, const StepShape& step);

}  // namespace train
