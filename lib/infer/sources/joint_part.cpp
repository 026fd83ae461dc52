#include "infer/sources/joint_part.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "infer/sources/share.h"
#include "model/test_temperature.h"
#include "nn/base/memory_rule.h"

namespace infer {
namespace {

constexpr const char *kWithout = "without", *kOpen = "auto";

double bias_of(const std::string& text, const std::string& name) {
  if (text == kWithout) return -HUGE_VAL;
  const auto value = number_in(text);
  if (!value || !(std::abs(*value) <= kMostBias))
    core::fail(core::Code::usage, "--{}-joint-bias: takes -1M to 1M, without or auto, not {}", name,
               text);
  return *value;
}

}  // namespace

void JointOptions::fields(core::FieldList& f, const std::string& name, const std::string& entries) {
  f(name + "-joint-temperature", temperature,
    "temperature of " + entries + " in the joint softmax; auto: --joint-temperature")
      .between(model::kLeastTemperature, 1e6)
      .or_auto();
  f(name + "-joint-bias", bias,
    "log-weight of " + entries +
        " in the joint softmax, added to their scores; without: leave them out");
}

void check_temperature(const std::string& flag, double temperature) {
  if (temperature != 0 && temperature < model::kLeastTemperature)
    core::fail(core::Code::usage, "--{}: takes {} to 1M, or auto, not {}", flag,
               model::kLeastTemperature, temperature);
}

void JointPart::take(const JointOptions& options) {
  check_temperature(name + "-joint-temperature", options.temperature);
  if (options.temperature > 0) temperature = options.temperature;
  if (options.bias != kOpen) bias = bias_of(options.bias, name);
}

void JointPart::settle(JointOptions& options) const {
  options.temperature = temperature;
  options.bias = bias == 0 ? kOpen : bias_text(bias);
}

std::string bias_text(double bias) {
  return std::isfinite(bias) ? fmt::format("{}", bias) : kWithout;
}

torch::Tensor biased(const torch::Tensor& masses, double bias) {
  if (bias == 0) return masses;
  return std::isfinite(bias) ? masses + bias : torch::full_like(masses, nn::kUnseen);
}

}  // namespace infer
