#pragma once
// The temperature of the memories at test, where nothing is dropped out any more.

#include <cstdint>
#include <functional>
#include <vector>

#include "nn/arch/model.h"
#include "nn/base/memory_rule.h"
#include "nn/base/torch.h"
#include "train/batches.h"
#include "train/job.h"

namespace train {

// Why it is not that of the training: a key is normalised, so it is as long with dropout as
// without, but with dropout a part of it is noise. If c is the cosine of two draws of one key, all
// pairs score 1/c times at test what they scored in training, those of one label and those of two.
// (4 layers, d 256, dropout 0.1, 40,000 tokens of a novel: c is 0.58, the scores' deviation 1.9
// instead of 1.4, the memories' share of the softmax 64 % instead of 24 %, and 6.6 nats a token
// instead of 5.5.) A temperature of 1/c undoes it. Nothing else was found to: the noise comes from
// all layers, that of the embedding and that of the last attention are a fifth of it, and what all
// keys have in common accounts for a tenth of the mass.

/// What is tried, in units of the training's temperature.
inline const std::vector<double> kCalibrationSteps = {0.5, 0.7,  0.8, 0.9, 1, 1.1, 1.2, 1.35,
                                                      1.5, 1.75, 2,   2.5, 3, 4,   6,   10};
/// kCalibrationSteps from `least` on, times `trained`.
std::vector<double> calibration_points(double trained, double least = 0);

/// The micro-batches that a run begins with, a few of them: for a run without a text to validate
/// its memories on. `run.order` must not be in use elsewhere meanwhile.
std::vector<MicroBatch> calibration_batches(const Run& run);

/// The point of the lowest loss over the batches, the first of equals; in evaluation mode, without
/// what is carried from batch to batch. The loss has seen these keys, so that sharper ones would
/// seem good: no point is below `trained`. `rule`: of a micro-batch's number. The model is left in
/// the mode it was in.
double calibrate(nn::Model& model, const std::vector<MicroBatch>& batches,
                 const std::function<nn::MemoryRule(std::int64_t)>& rule, double trained,
                 torch::Device device);

}  // namespace train
