#include "infer/sources/plan_axes.h"

namespace infer {
namespace {

constexpr const char *kJointTemperature = "-joint-temperature", *kJointBias = "-joint-bias";

}  // namespace

std::vector<double> steps_of(const std::vector<double>& steps, double unit) {
  return core::mapped(steps, [&](double step) {
    return std::max(rounded_to_sign(step * unit), model::kLeastTemperature);
  });
}

PlanAxis joint_temperature_axis(MemoryPlan& plan) {
  return {
      "temperature", &plan.joint_temperature, steps_of(kTemperatureSteps, plan.joint_temperature)};
}

std::vector<AxisFacts> joint_part_facts(const std::string& name, const std::string& entries) {
  return {{name + kJointTemperature, name + kJointTemperature + "s",
              "temperatures of " + entries +
                  " in the joint softmax to try [0.5 to 3 times the current value]",
              model::kLeastTemperature, kMostTuned},
      {name + kJointBias, name + kJointBias + "es",
          "biases of " + entries + " to try, besides leaving them out [the optimum]", -kMostBias,
          kMostBias}};
}

void add_joint_axes(MemoryPlan& plan, JointPart& part, std::vector<PlanAxis>& axes) {
  PlanAxis temperature{part.name + kJointTemperature, &part.temperature,
      steps_of(kTemperatureSteps, plan.temperature_of(part)), std::isfinite(part.bias)};
  temperature.temperature_of = part.name;
  PlanAxis bias{part.name + kJointBias, &part.bias};
  bias.bias_of = part.name;
  axes.push_back(std::move(temperature)), axes.push_back(std::move(bias));
}

PartTemperatures temperatures_of(const JointPart& part, const MemoryPlan& plan, const Grid& grid) {
  const std::string own = part.name + kJointTemperature, all = "temperature";
  const auto values = grid.values(own, part.temperature);
  if (values.size() > 1 || values[0] > 0) return {grid.find(own), values};
  return {grid.find(all), grid.values(all, plan.joint_temperature)};
}

}  // namespace infer
