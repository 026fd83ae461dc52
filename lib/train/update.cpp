#include "train/update.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "nn/base/cuda.h"

namespace train {
namespace {

struct Hook : torch::autograd::PostAccumulateGradHook {
  Hook(std::function<void(std::size_t)> to_call, std::size_t of_weight)
      : arrived(std::move(to_call)), weight(of_weight) {}
  void operator()(const torch::autograd::Variable& /*tensor*/) override { arrived(weight); }
  std::function<void(std::size_t)> arrived;
  std::size_t weight;
};

bool has_gradient(const torch::Tensor& weight) {
  return weight.is_leaf() && weight.requires_grad();
}

}  // namespace

void descend(
    Update& update, Optimiser& optimiser, double clip, std::int64_t step, torch::Tensor norm) {
  const torch::NoGradGuard no_grad;
  const auto device = update.loss.device();
  // If no target is scored, nothing is learned.
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(1, update.scored));
  if (!norm.defined()) norm = gradient_norm(optimiser.weights());
  update.norm = norm.to(device) * share;
  if (nn::in_host_memory(update.loss) && !std::isfinite(update.norm.item<double>()))
    core::bad_data(
        "step {}: the gradient is not finite; lower --lr, lengthen --warmup or set --clip",
        step + 1);
  auto scale = torch::full({}, share, torch::TensorOptions().dtype(torch::kFloat64).device(device));
  if (clip > 0) scale = scale * (clip / (update.norm + 1e-6)).clamp_max(1);
  optimiser.step(update.lr, scale);
}

void put_optimiser(model::Checkpoint& checkpoint, const Optimiser& optimiser) {
  for (const auto& [name, tensor] : optimiser.tensors())
    checkpoint.tensors["optimiser." + name] = tensor;
  checkpoint.facts["optimiser"] = optimiser.numbers();
}

void get_optimiser(const model::Checkpoint& checkpoint, Optimiser& optimiser) {
  optimiser.restore(
      [&](const std::string& name) { return checkpoint.tensor("optimiser." + name); });
  optimiser.set_numbers(
      core::get<std::vector<double>>(checkpoint.facts, "optimiser", checkpoint.origin));
}

GradientHooks::GradientHooks(
    const NamedWeights& weights, const std::function<void(std::size_t)>& arrived)
    : weights_(weights) {
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (const auto& weight = weights_[i].second; has_gradient(weight))
      torch::autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<Hook>(arrived, i));
}

GradientHooks::~GradientHooks() {
  for (const auto& [name, weight] : weights_)
    if (has_gradient(weight)) torch::autograd::impl::set_post_acc_grad_hooks(weight, nullptr);
}

}  // namespace train
