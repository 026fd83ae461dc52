#pragma once
// What kinds of sources share of tuning: steps, and the temperature of the joint softmax.

#include <vector>

#include "infer/sources/memory_plan.h"
#include "infer/sources/source.h"

namespace infer {

inline const std::vector<double> kTemperatureSteps = {0.5,  0.7, 0.8,  0.9, 1,   1.1, 1.2,
                                                      1.35, 1.5, 1.75, 2,   2.5, 3};
inline const std::vector<double> kThetaSteps = {0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 8};
inline const std::vector<double> kStoreTemperatureSteps = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.35,
                                                           0.5,    0.7,   1,    1.5, 2,   4};
/// What --joint-temperature and its like take.
inline constexpr double kMostTuned = 1e6;

/// To four digits: a signature quotes them.
double rounded_to_sign(double value);
/// The steps, in this unit.
std::vector<double> steps_of(const std::vector<double>& steps, double unit);
/// The temperature that all sources in the joint softmax share.
PlanAxis joint_temperature_axis(MemoryPlan& plan);

}  // namespace infer
