#pragma once
// Estimates the resources of a run before it starts.

#include <cstdint>
#include <string>

#include "core/json.h"
#include "train/objective.h"
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

}  // namespace train
