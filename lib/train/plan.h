#pragma once
// Estimates the resources of a run before it starts.
// Memory of each process of a run, by what the processes share out.

#include "train/trainer.h"

namespace train {

/// Returns parameters, data, memory, disk and time. Measures time and memory on a few steps (with
/// memory, if the objective has one), which change the weights: do not train them afterwards. Units
/// are bytes, seconds and hours, on this machine under its present load, without validation.
/// "per_rank" has the rows of shard_table().
core::OrderedJson plan(Objective& objective, const KeepOptions& keep);

/// Returns the sbatch options (Slurm) for a one-rank job: `threads`, the memory of `plan` plus a
/// quarter and 256 MiB, its time plus a half and ten minutes (validation, checkpoints, a slower
/// node), and a GPU if measured on one.
std::string sbatch_line(const core::OrderedJson& plan, std::int64_t threads, bool gpu);

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
    const std::vector<std::vector<torch::Tensor>>& blocks, const OptimiserOptions& options,
    const StepShape& step, std::int64_t ranks, Sharded sharded);

/// Returns rows {"ranks", "shard", "weights_bytes", "gradient_bytes", "optimiser_bytes"} for 2, 4
/// and 8 processes and all that they can share out.
std::vector<core::OrderedJson> shard_table(const NamedWeights& weights,
    const std::vector<std::vector<torch::Tensor>>& blocks, const OptimiserOptions& options,
    const StepShape& step);

}  // namespace train
