#pragma once
// What a run will take, before anything is done.

#include "core/json.h"
#include "train/job.h"
#include "train/trainer.h"

namespace train {

/// Parameters, tokens, memory, disk and time. Time and memory are measured on a few updates (with
/// memory, where the objective has one), which change the run's model: it must not be trained
/// afterwards. Bytes; seconds and hours on this machine as it is now, validation left out.
core::OrderedJson plan(Run& run, const KeepOptions& keep);

}  // namespace train
