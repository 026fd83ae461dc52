#pragma once
// Temperature of the memories at test time.

#include "model/model_config.h"

namespace model {

/// Minimum temperature of a memory: below it, float32 cannot hold the scores.
constexpr double kLeastTemperature = 1e-6;

/// Returns joint_temperature of config.json, the calibrated value; without it, the temperature in
/// training.
double test_temperature(const TrainingFacts& facts);

}  // namespace model
