#include "nn/layers/layers.h"

#include "core/error.h"

namespace nn {
namespace {
thread_local bool shapes_only = false;
thread_local torch::Dtype parameter_type = torch::kFloat32;
}  // namespace

torch::Tensor blank(torch::IntArrayRef sizes) {
  return torch::empty(
      sizes, torch::device(shapes_only ? torch::kMeta : torch::kCPU).dtype(parameter_type));
}

std::vector<std::shared_ptr<torch::nn::Module>> add_layers(torch::nn::Module& owner,
                                                           const std::string& name,
                                                           std::int64_t n) {
  const auto list = owner.register_module(name, std::make_shared<torch::nn::Module>());
  std::vector<std::shared_ptr<torch::nn::Module>> layers;
  for (std::int64_t i = 0; i < n; ++i)
    layers.push_back(
        list->register_module(std::to_string(i), std::make_shared<torch::nn::Module>()));
  return layers;
}

ShapesOnly::ShapesOnly() : before_(shapes_only) { shapes_only = true; }
ShapesOnly::~ShapesOnly() { shapes_only = before_; }

ParameterType::ParameterType(torch::Dtype dtype) : before_(parameter_type) {
  parameter_type = dtype;
}
ParameterType::~ParameterType() { parameter_type = before_; }

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias) {
  weight = register_parameter("weight", blank({out, in}));
  if (with_bias) bias = register_parameter("bias", blank({out}));
}

torch::Tensor Linear::forward(const torch::Tensor& x) const {
  return torch::linear(x, weight, bias);
}

NormKind parse_norm_kind(const std::string& name) {
  if (name == "layer") return NormKind::layer;
  if (name == "rms") return NormKind::rms;
  if (name == "rms-one") return NormKind::rms_one;
  core::fail(core::Code::bad_config, "norm-kind: takes layer, rms or rms-one, not '{}'", name);
}

LayerNorm::LayerNorm(std::int64_t d, double epsilon, bool with_bias, NormKind kind)
    : epsilon_(epsilon), kind_(kind) {
  weight = register_parameter("weight", blank({d}));
  if (with_bias) bias = register_parameter("bias", blank({d}));
}

torch::Tensor LayerNorm::forward(const torch::Tensor& x) const {
  if (kind_ == NormKind::layer)
    return torch::layer_norm(x, {weight.size(0)}, weight, bias, epsilon_);
  const auto y = torch::rms_norm(x, {weight.size(0)}, factors(), epsilon_);
  return bias.defined() ? y + bias : y;
}

void LayerNorm::first_values() {
  if (kind_ == NormKind::rms_one) weight.zero_();
}

Activation parse_activation(const std::string& name) {
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu-exact") return Activation::gelu_exact;
  if (name == "relu") return Activation::relu;
  if (name == "silu") return Activation::silu;
  core::fail(core::Code::bad_config, "activation: takes gelu, gelu-exact, relu or silu, not '{}'",
             name);
}

torch::Tensor activate(const torch::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return torch::gelu(x, "tanh");
    case Activation::gelu_exact:
      return torch::gelu(x);
    case Activation::relu:
      return torch::relu(x);
    case Activation::silu:
      return torch::silu(x);
  }
  return x;
}

torch::Tensor dropped(const torch::Tensor& x, double p, bool training) {
  return p > 0 && training ? torch::dropout(x, p, true) : x;
}

}  // namespace nn
