// Save and load the parts of a checkpoint: weights, States, generators.

#include <ATen/Generator.h>

#include <mutex>

#include "core/error.h"
#include "model/checkpoint.h"

namespace model {
namespace {

using core::Code;
using core::fail;

at::Generator default_generator(torch::Device device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

torch::Tensor Checkpoint::tensor(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  if (!files) fail(Code::bad_data, "{}: has no tensor {}", origin, name);
  return files->tensor(name);
}

torch::Tensor Checkpoint::numbers(const std::string& name, std::int64_t begin,
                                  std::int64_t end) const {
  const auto found = tensors.find(name);
  if (found == tensors.end() && files) return files->numbers(name, begin, end);
  const auto all = tensor(name).flatten();
  if (begin < 0 || begin > end || end > all.numel())
    fail(Code::bad_data, "{}: {} has {} numbers, not {}", origin, name, all.numel(), end);
  return all.narrow(0, begin, end - begin);
}

void Checkpoint::put_weights(const std::string& name, const nn::Model& model) {
  for (const auto& [weight, tensor] : model.named_weights())
    tensors[name + "." + weight] = tensor.detach();
}

void Checkpoint::get_weights(const std::string& name, nn::Model& model) const {
  for (const auto& [weight, target] : model.named_weights())
    get_weight(name + "." + weight, target);
}

void Checkpoint::get_weight(const std::string& name, const torch::Tensor& weight) const {
  const torch::NoGradGuard no_grad;
  const auto saved = tensor(name);
  if (saved.sizes() != weight.sizes() || saved.scalar_type() != weight.scalar_type())
    fail(Code::bad_data, "{}: {} is {} {}, but in the model {} {}", origin, name,
         c10::toString(saved.scalar_type()), fmt::format("[{}]", fmt::join(saved.sizes(), ", ")),
         c10::toString(weight.scalar_type()), fmt::format("[{}]", fmt::join(weight.sizes(), ", ")));
  torch::Tensor(weight).copy_(saved);
}

void Checkpoint::put_state(const std::string& name, const nn::State& state) {
  auto counts = core::Json::object(), names = core::Json::array();
  for (const auto& [part, tensor] : state.tensors) {
    tensors[name + "." + part] = tensor.detach();
    names.push_back(part);
  }
  for (const auto& [part, count] : state.counts) counts[part] = count;
  facts[name] = {{"counts", counts}, {"tensors", names}};
  if (!state.by_step.empty()) facts[name]["by_step"] = state.by_step;
}

nn::State Checkpoint::get_state(const std::string& name, torch::Device device) const {
  nn::State state;
  const auto part = core::get<core::Json>(facts, name.c_str(), origin);
  for (const auto& tensor_name : core::get<std::vector<std::string>>(part, "tensors", origin))
    state.tensors[tensor_name] = tensor(name + "." + tensor_name).to(device);
  state.counts = core::get<std::map<std::string, std::int64_t>>(part, "counts", origin);
  if (part.contains("by_step"))
    state.by_step = core::get<std::set<std::string>>(part, "by_step", origin);
  return state;
}

void Checkpoint::put_rng(const std::string& name, const core::Rng& rng) {
  facts[name] = rng.state();
}

core::Rng Checkpoint::get_rng(const std::string& name) const {
  core::Rng rng(0);
  rng.set_state(core::get<core::Rng::State>(facts, name.c_str(), origin));
  return rng;
}

void Checkpoint::put_generator(const std::string& name, torch::Device device) {
  auto generator = default_generator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  tensors[name] = generator.get_state();
}

void Checkpoint::get_generator(const std::string& name, torch::Device device) const {
  const auto saved = tensor(name);
  auto generator = default_generator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const auto now = generator.get_state();
  if (saved.sizes() != now.sizes() || saved.scalar_type() != now.scalar_type())
    fail(Code::bad_data, "{}: {} is not a state of this random generator", origin, name);
  generator.set_state(saved);
}

}  // namespace model
