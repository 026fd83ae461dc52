#pragma once
// What the memories' scores are divided by at test.

#include "model/model_config.h"

namespace model {

/// No memory's temperature is below: float32 holds no score over it.
constexpr double kLeastTemperature = 1e-6;

/// What config.json says under joint_temperature, to which train calibrated the memories; of a
/// model that does not say it, what divided their scores in training.
double test_temperature(const TrainingFacts& facts);

}  // namespace model
