#pragma once
// Basic modules of all architectures: parameters, matrix, norm, dropout, activation.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/base/torch.h"
#include "nn/layers/init.h"

namespace nn {

/// Returns an uninitialised tensor for a parameter (nn/init.h initialises it): float32 unless a
/// ParameterType exists; on the meta device within a ShapesOnly.
torch::Tensor blank(torch::IntArrayRef sizes);

/// Registers NAME.0, NAME.1, ... in `owner` and returns these modules, which hold the parts of n
/// layers.
std::vector<std::shared_ptr<torch::nn::Module>> add_layers(torch::nn::Module& owner,
                                                           const std::string& name, std::int64_t n);

/// Creates this thread's parameters without memory while the object exists, to count the parameters
/// of models of any size.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

 private:
  bool before_;
};

/// Sets the type of this thread's new parameters while the object exists.
class ParameterType {
 public:
  explicit ParameterType(torch::Dtype dtype);
  ~ParameterType();
  ParameterType(const ParameterType&) = delete;
  ParameterType& operator=(const ParameterType&) = delete;

 private:
  torch::Dtype before_;
};

/// Computes x W^T + b: (…, in) -> (…, out), with weight (out, in) and bias (out).
class Linear : public torch::nn::Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias);
  torch::Tensor forward(const torch::Tensor& x) const;
  torch::Tensor weight, bias;  ///< bias undefined without one
};

enum class NormKind { layer, rms, rms_one };
/// Parses the name. Throws Error{bad_config}.
NormKind parse_norm_kind(const std::string& name);

/// Normalises the last dimension (d), with weight and optional bias:
///   layer    (x - mean) / sqrt(variance + epsilon) weight + bias
///   rms      x / sqrt(mean of x^2 + epsilon) weight + bias (Zhang and Sennrich 2019)
///   rms_one  rms with 1 + weight, where weight starts at 0 (Gemma)
class LayerNorm : public torch::nn::Module, public OwnFirstValues {
 public:
  LayerNorm(std::int64_t d, double epsilon, bool bias, NormKind kind = NormKind::layer);
  torch::Tensor forward(const torch::Tensor& x) const;
  torch::Tensor weight, bias;
  double epsilon() const { return epsilon_; }
  /// Returns the factors of a row: weight, or 1 + weight.
  torch::Tensor factors() const { return kind_ == NormKind::rms_one ? weight + 1 : weight; }
  void first_values() override;

 private:
  double epsilon_;
  NormKind kind_;
};

/// gelu (the tanh form of GPT-2), gelu-exact, relu or silu.
enum class Activation { gelu, gelu_exact, relu, silu };
/// Parses the name. Throws Error{bad_config}.
Activation parse_activation(const std::string& name);
torch::Tensor activate(const torch::Tensor& x, Activation activation);

/// Applies dropout with probability p; returns x if p is 0 or `training` is false.
torch::Tensor dropped(const torch::Tensor& x, double p, bool training);

}  // namespace nn
