#include "infer/sources/plan_axes.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/test_temperature.h"

namespace infer {

double rounded_to_sign(double value) { return std::stod(fmt::format("{:.4g}", value)); }

std::vector<double> steps_of(const std::vector<double>& steps, double unit) {
  std::vector<double> values;
  for (const double step : steps)
    values.push_back(std::max(rounded_to_sign(step * unit), model::kLeastTemperature));
  return values;
}

PlanAxis joint_temperature_axis(MemoryPlan& plan) {
  return {"temperature", [&plan] { return plan.rule.temperature; },
          [&plan](double value) { plan.rule.temperature = value; },
          steps_of(kTemperatureSteps, plan.rule.temperature)};
}

}  // namespace infer
