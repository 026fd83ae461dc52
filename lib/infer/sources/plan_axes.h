#pragma once
// What kinds of sources share of tuning: steps, and the numbers of the joint softmax.

#include <string>
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
/// The temperature that all parts of the joint softmax share.
PlanAxis joint_temperature_axis(MemoryPlan& plan);
/// The axes of one part, its temperature and its bias, and what is said of them.
std::vector<AxisFacts> joint_part_facts(const std::string& name, const std::string& entries);
void add_joint_axes(MemoryPlan& plan, JointPart& part, std::vector<PlanAxis>& axes);

/// The temperatures of a part on a grid, and the place of the axis that has them: its own, or that
/// of all parts where the part has none.
struct PartTemperatures {
  std::size_t axis;
  std::vector<double> values;
};
PartTemperatures temperatures_of(const JointPart& part, const MemoryPlan& plan, const Grid& grid);

}  // namespace infer
