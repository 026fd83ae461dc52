#include "infer/sources/memory_weight.h"

#include "model/model_config.h"
#include "nn/base/memory_rule.h"

namespace infer {
namespace {

double share_of(std::string_view text, const char* flag) {
  const auto value = core::read_number<double>(text);
  if (!value || !(*value >= 0 && *value < 1))
    core::bad_usage("{}: takes 0 to below 1, gate or auto, not {}", flag, text);
  return *value;
}

constexpr const char *kWithout = "without", *kOpen = "auto";

double bias_of(const std::string& text, const std::string& name) {
  if (text == kWithout) return -HUGE_VAL;
  const auto value = core::read_number<double>(text);
  if (!value || !(std::abs(*value) <= kMostBias))
    core::bad_usage("--{}-joint-bias: takes -1M to 1M, without or auto, not {}", name, text);
  return *value;
}

}  // namespace

MemoryWeight::MemoryWeight(double value) : text_(fmt::format("{}", value)) {}

double MemoryWeight::value(const char* flag, double otherwise) const {
  return gated() ? 0 : open() ? otherwise : share_of(text_, flag);
}

MemoryWeights::MemoryWeights(const std::vector<double>& values)
    : texts_(core::mapped(values, [](double value) { return fmt::format("{}", value); })) {}

std::vector<double> MemoryWeights::values(const char* flag, double otherwise) const {
  if (open()) return {otherwise};
  std::vector<double> values;
  for (const auto& text : texts_)
    for (const auto& piece : core::pieces(text, ',')) values.push_back(share_of(piece, flag));
  return values;
}

std::string weight_text(std::span<const double> weights) {
  const bool one = std::ranges::count(weights, weights[0]) == std::ssize(weights);
  return one ? fmt::format("{}", weights[0]) : fmt::format("{}", fmt::join(weights, "+"));
}

void JointOptions::fields(core::FieldList& f, const std::string& name, const std::string& entries) {
  f(name + "-joint-temperature", temperature,
      "temperature of " + entries + " in the joint softmax; auto: --joint-temperature")
      .auto_or(model::kLeastTemperature, 1e6);
  f(name + "-joint-bias", bias,
      "log-weight of " + entries +
          " in the joint softmax, added to their scores; without: leave them out; auto: 0");
}

void check_temperature(const std::string& flag, double temperature) {
  if (temperature != 0 && temperature < model::kLeastTemperature)
    core::bad_usage(
        "--{}: takes {} to 1M, or auto, not {}", flag, model::kLeastTemperature, temperature);
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
