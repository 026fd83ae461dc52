#pragma once
// What a run will take, before anything is done.

#include <cstdint>
#include <string>

#include "core/json.h"
#include "train/course.h"
#include "train/trainer.h"

namespace train {

/// Parameters, data, memory, disk and time. Time and memory are measured on a few updates (with
/// memory, where the objective has one), which change the weights: they must not be trained
/// afterwards. Bytes; seconds and hours on this machine as it is now, validation left out.
core::OrderedJson plan(Course& course, const KeepOptions& keep);

/// What a batch job of one rank asks for, as a line of options of Slurm's sbatch: `threads`, a
/// quarter more memory than `plan` measured and 256 MiB, half as much time again and ten minutes
/// (validation, checkpoints, a slower node), with a GPU where it was measured on one.
std::string sbatch_line(const core::OrderedJson& plan, std::int64_t threads, bool gpu);

}  // namespace train
