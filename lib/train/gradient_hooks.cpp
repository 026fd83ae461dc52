#include "train/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

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

GradientHooks::GradientHooks(const NamedWeights& weights,
                             const std::function<void(std::size_t)>& arrived)
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
