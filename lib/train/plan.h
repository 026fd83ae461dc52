#pragma once
// What a run will take, before anything is done.

#include "core/json.h"
#include "train/course.h"
#include "train/trainer.h"

namespace train {

/// Parameters, data, memory, disk and time. Time and memory are measured on a few updates (with
/// memory, where the objective has one), which change the weights: they must not be trained
/// afterwards. Bytes; seconds and hours on this machine as it is now, validation left out.
core::OrderedJson plan(Course& course, const KeepOptions& keep);

}  // namespace train
