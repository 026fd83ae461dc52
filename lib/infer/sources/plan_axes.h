#pragma once
// Tuning parameters common to kinds of sources: steps, and the parameters of the joint softmax.

#include "infer/sources/memory_plan.h"

namespace infer {

inline const std::vector<double> kTemperatureSteps = {
    0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3};
inline const std::vector<double> kThetaSteps = {0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 8};
inline const std::vector<double> kStoreTemperatureSteps = {
    0.0125, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 1.5, 2, 4};
inline const std::vector<double> kModelTemperatureSteps = {
    0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2};
/// Upper limit of --joint-temperature and similar options.
inline constexpr double kMostTuned = 1e6;

/// Rounds to four digits, because signatures quote the value.
inline double rounded_to_sign(double value) { return std::stod(fmt::format("{:.4g}", value)); }
/// Returns the steps multiplied by `unit`.
std::vector<double> steps_of(const std::vector<double>& steps, double unit);
/// Returns the axis of the temperature common to all parts of the joint softmax.
PlanAxis joint_temperature_axis(MemoryPlan& plan);
/// joint_part_facts() describes the axes of a part, temperature and bias; add_joint_axes() adds
/// them.
std::vector<AxisFacts> joint_part_facts(const std::string& name, const std::string& entries);
void add_joint_axes(MemoryPlan& plan, JointPart& part, std::vector<PlanAxis>& axes);

/// Temperatures of a part on a grid, and the index of their axis: the part's own axis, or the
/// common axis if the part has none.
struct PartTemperatures {
  std::size_t axis;
  std::vector<double> values;
};
PartTemperatures temperatures_of(const JointPart& part, const MemoryPlan& plan, const Grid& grid);

}  // namespace infer
