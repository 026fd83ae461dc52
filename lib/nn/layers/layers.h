#pragma once
// Basic modules of all architectures: parameters, matrix, norm, dropout, activation.
// Initialisation of parameters.
// The second sub-layer of a block, which processes each token independently.
// Checks of options that several architectures share.

#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace nn {

/// Fills all parameters of `module` from torch's generator, in the order of registration.
///
/// "gpt2": matrices and tables normal(0, .02), the projections back to the residual stream (c_proj)
/// normal(0, .02 / sqrt(2 layers)).
///
/// "fairseq": tables normal(0, width^-0.5), matrices Xavier uniform.
///
/// "fan-in": tables normal(0, width^-0.5), matrices normal(0, columns^-0.5), the projections back
/// to the residual stream divided by sqrt(layers).
///
/// "depth": tables and matrices normal(0, (2 columns (l + 1))^-0.5) in layer l, counted from 0,
/// clipped to three standard deviations; outside of layers l is 0 (Zhang and Bottou 2025, arXiv
/// 2507.03285, table 6).
///
/// All: norms 1, biases 0, recurrent weights and biases uniform in +-1/sqrt(width of the cells).
/// Then the modules derived from OwnFirstValues fill their own parameters, in the order of
/// registration. Throws Error{bad_config} for another scheme.
void initialise(torch::nn::Module& module, const std::string& scheme, std::int64_t layers);

/// A module that initialises some of its parameters itself.
class OwnFirstValues {
 public:
  virtual ~OwnFirstValues() = default;
  virtual void first_values() = 0;
};

/// Disables initialise() in this thread while the object exists, for models whose weights are read
/// from a file.
struct NoFirstValues : core::ScopedValue<bool> {
  NoFirstValues();
};

/// Returns an uninitialised tensor for a parameter (nn/init.h initialises it): float32 unless a
/// ParameterType exists; on the meta device within a ShapesOnly.
torch::Tensor blank(torch::IntArrayRef sizes);

/// Registers NAME.0, NAME.1, ... in `owner` and returns these modules, which hold the parts of n
/// layers.
std::vector<std::shared_ptr<torch::nn::Module>> add_layers(
    torch::nn::Module& owner, const std::string& name, std::int64_t n);

/// Creates this thread's parameters without memory while the object exists, to count the parameters
/// of models of any size.
struct ShapesOnly : core::ScopedValue<bool> {
  ShapesOnly();
};

/// Sets the type of this thread's new parameters while the object exists.
struct ParameterType : core::ScopedValue<torch::Dtype> {
  explicit ParameterType(torch::Dtype dtype);
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

/// Base class of the second sub-layer: a feed-forward network, experts, or a memory.
class TokenNetwork : public torch::nn::Module {
 public:
  /// Maps x (..., d) to the same shape. Tokens do not affect each other.
  virtual torch::Tensor forward(const torch::Tensor& x) const = 0;
};

/// The activation between the two matrices of a feed-forward network.
struct Inner {
  Activation activation;
  bool gated;
  double dropout;
  /// Returns the output width of the first matrix if the second matrix reads `width`.
  std::int64_t wide(std::int64_t width) const { return gated ? 2 * width : width; }
  /// Maps (..., wide(width)) to (..., width) with the activation; if gated, with activation(first
  /// half) * second half (Shazeer 2020). Applies dropout if `training`.
  torch::Tensor of(const torch::Tensor& x, bool training) const;
};

/// x (..., d) -> (..., d): c_proj(inner(c_fc(x))).
class FeedForward : public TokenNetwork {
 public:
  FeedForward(const ShapeOptions& shape, Activation activation, bool bias, bool gated = false);
  torch::Tensor forward(const torch::Tensor& x) const override;
  bool gated() const { return inner_.gated; }
  const Linear& c_fc() const { return *c_fc_; }
  const Linear& c_proj() const { return *c_proj_; }

 private:
  Inner inner_;
  std::shared_ptr<Linear> c_fc_, c_proj_;
};

/// Checks that the heads divide d_model. All checks throw Error{bad_config} that names the option.
void check_heads(const ShapeOptions& shape);
/// Checks that the key-value heads divide the query heads; heads may have any width.
void check_heads(const ShapeOptions& shape, const TransformerOptions& options);
/// Checks that norm is pre or post.
void check_norm(const TransformerOptions& options);
/// Checks that rotary embeddings rotate pairs; call check_heads() before.
void check_positions(const ShapeOptions& shape, const TransformerOptions& options);
/// Checks that no token has more experts than there are, and that options of experts are used only
/// with experts.
void check_experts(const ExpertOptions& experts);
/// Checks that the named layers exist and that a head has enough values to read. Requires
/// memory.any() of a transformer.
void check_memory_layers(const MemoryLayerOptions& memory, const ShapeOptions& shape);

}  // namespace nn
