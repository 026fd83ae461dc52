#include "nn/layers/layers.h"

#include <cstdlib>

namespace nn {
namespace {

thread_local bool no_first_values = false;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Whether the weight has a row per token or per position.
bool is_table(const std::string& name) {
  return contains(name, ".table_") || name.ends_with("wte.weight") ||
         name.ends_with("wpe.weight") || name.ends_with("lm_head.weight");
}

/// Returns N from "h.N", counted from 0, or 0 outside of layers.
std::int64_t layer_of(const std::string& name) {
  const auto path = "." + name;
  const auto at = path.find(".h.");
  return at == std::string::npos ? 0 : std::strtoll(path.c_str() + at + 3, nullptr, 10);
}

void fill(
    const std::string& name, torch::Tensor& p, const std::string& scheme, std::int64_t layers) {
  if (contains(name, "_ih_l") || contains(name, "_hh_l")) {  // names of torch's LSTM
    const auto width = static_cast<double>(p.size(0)) / 4;   // of the cells, four gates each
    const auto bound = 1 / std::sqrt(width);
    p.uniform_(-bound, bound);
  } else if (p.dim() == 1) {
    p.fill_(name.ends_with("bias") ? 0 : 1);
  } else if (scheme == "depth") {
    const auto numbers = static_cast<double>(2 * p.size(-1) * (layer_of(name) + 1));
    const auto spread = 1 / std::sqrt(numbers);
    p.normal_(0, spread).clamp_(-3 * spread, 3 * spread);
  } else if (scheme != "gpt2" && is_table(name)) {
    p.normal_(0, 1 / std::sqrt(static_cast<double>(p.size(1))));
  } else if (scheme == "fairseq") {
    torch::nn::init::xavier_uniform_(p);
  } else {
    const bool gpt2 = scheme == "gpt2", residual = name.ends_with("c_proj.weight");
    const double spread = gpt2 ? .02 : 1 / std::sqrt(static_cast<double>(p.size(-1)));
    const auto additions = static_cast<double>(gpt2 ? 2 * layers : layers);
    p.normal_(0, residual ? spread / std::sqrt(additions) : spread);
  }
}

thread_local bool shapes_only = false;
thread_local torch::Dtype parameter_type = torch::kFloat32;

}  // namespace

void initialise(torch::nn::Module& module, const std::string& scheme, std::int64_t layers) {
  if (scheme != "gpt2" && scheme != "fairseq" && scheme != "fan-in" && scheme != "depth")
    core::bad_config("init: takes gpt2, fairseq, fan-in or depth, not '{}'", scheme);
  if (no_first_values) return;
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) fill(item.key(), item.value(), scheme, layers);
  for (const auto& part : module.modules(/*include_self=*/false))
    if (auto* const own = dynamic_cast<OwnFirstValues*>(part.get())) own->first_values();
}

NoFirstValues::NoFirstValues() : ScopedValue(no_first_values, true) {}

torch::Tensor blank(torch::IntArrayRef sizes) {
  return torch::empty(
      sizes, torch::device(shapes_only ? torch::kMeta : torch::kCPU).dtype(parameter_type));
}

std::vector<std::shared_ptr<torch::nn::Module>> add_layers(
    torch::nn::Module& owner, const std::string& name, std::int64_t n) {
  const auto list = owner.register_module(name, std::make_shared<torch::nn::Module>());
  return core::generated(n, [&](std::int64_t i) {
    return list->register_module(std::to_string(i), std::make_shared<torch::nn::Module>());
  });
}

ShapesOnly::ShapesOnly() : ScopedValue(shapes_only, true) {}

ParameterType::ParameterType(torch::Dtype dtype) : ScopedValue(parameter_type, dtype) {}

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
  core::bad_config("norm-kind: takes layer, rms or rms-one, not '{}'", name);
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
  core::bad_config("activation: takes gelu, gelu-exact, relu or silu, not '{}'", name);
}

torch::Tensor activate(const torch::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::gelu: return torch::gelu(x, "tanh");
    case Activation::gelu_exact: return torch::gelu(x);
    case Activation::relu: return torch::relu(x);
    case Activation::silu: return torch::silu(x);
  }
  return x;
}

torch::Tensor dropped(const torch::Tensor& x, double p, bool training) {
  return p > 0 && training ? torch::dropout(x, p, true) : x;
}

torch::Tensor Inner::of(const torch::Tensor& x, bool training) const {
  if (!gated) return dropped(activate(x, activation), dropout, training);
  const auto halves = x.chunk(2, -1);
  return dropped(activate(halves[0], activation) * halves[1], dropout, training);
}

FeedForward::FeedForward(const ShapeOptions& shape, Activation activation, bool bias, bool gated)
    : inner_{activation, gated, shape.activation_dropout} {
  const auto d_ff = shape.ffn_width();
  c_fc_ = register_module("c_fc", std::make_shared<Linear>(shape.d_model, inner_.wide(d_ff), bias));
  c_proj_ = register_module("c_proj", std::make_shared<Linear>(d_ff, shape.d_model, bias));
}

torch::Tensor FeedForward::forward(const torch::Tensor& x) const {
  return c_proj_->forward(inner_.of(c_fc_->forward(x), is_training()));
}

void check_heads(const ShapeOptions& shape) {
  if (shape.d_model % shape.heads != 0)
    core::bad_config("heads: {} does not divide d-model {}", shape.heads, shape.d_model);
}

void check_heads(const ShapeOptions& shape, const TransformerOptions& options) {
  if (options.d_head == 0) check_heads(shape);
  if (options.kv_heads > 0 && shape.heads % options.kv_heads != 0)
    core::bad_config("kv-heads: {} does not divide heads {}", options.kv_heads, shape.heads);
}

void check_norm(const TransformerOptions& options) {
  if (options.norm != "pre" && options.norm != "post")
    core::bad_config("norm: takes pre or post, not '{}'", options.norm);
}

void check_positions(const ShapeOptions& shape, const TransformerOptions& options) {
  if (options.positions != "rope") return;
  const HeadShape heads = head_shape(shape, options);
  if (heads.rotated % 2 != 0)
    core::bad_config("positions: rope needs heads of even width, not {}", heads.rotated);
  if (heads.rotated == 0)
    core::bad_config("rope-partial-factor: {} of a head of size {} is less than two dimensions",
        options.rope.share, heads.width);
  const auto& rope = options.rope;
  for (const auto& [name, factors] : {std::pair("rope-short-factors", &rope.factors),
           std::pair("rope-long-factors", &rope.long_factors)})
    if (const auto pairs = rope.scaling == "longrope" ? heads.rotated / 2 : 0;
        std::ssize(*factors) != pairs)
      core::bad_config("{}: has {} numbers; heads of size {} with --rope-scaling {} need {}", name,
          factors->size(), heads.rotated, rope.scaling, pairs);
  if (options.rope.high <= options.rope.low)
    core::bad_config("rope-high-freq-factor: {} must be above rope-low-freq-factor {}",
        options.rope.high, options.rope.low);
}

void check_experts(const ExpertOptions& experts) {
  const ExpertOptions usual;
  if (!experts.any()) {
    if (experts.per_token != usual.per_token)
      core::bad_config("experts-per-token: requires experts");
    if (experts.normalised != usual.normalised)
      core::bad_config("experts-normalised: requires experts");
    return;
  }
  if (experts.per_token > experts.count)
    core::bad_config(
        "experts-per-token: {} is more than experts {}", experts.per_token, experts.count);
}

void check_memory_layers(const MemoryLayerOptions& memory, const ShapeOptions& shape) {
  const auto layers = shape.layers;
  const auto& chosen = memory.layers;
  if (!memory.any() && !chosen.empty()) core::bad_config("memory-layers: requires memory-layer");
  for (const auto layer : chosen) {
    if (layer > layers)
      core::bad_config("memory-layers: {} is out of range; there are {} layers", layer, layers);
    if (std::count(chosen.begin(), chosen.end(), layer) > 1)
      core::bad_config("memory-layers: {} is given twice", layer);
  }
  const auto width = memory.d_ngram > 0 ? memory.d_ngram : shape.d_model;
  if (memory.kind == "ngram" && width % memory.heads != 0)
    core::bad_config(
        "memory-layer-heads: {} does not divide memory-layer-width {}", memory.heads, width);
  if (memory.kind != "product-key") return;
  if (memory.top_k > memory.keys)
    core::bad_config(
        "memory-layer-top-k: {} is more than memory-layer-keys {}", memory.top_k, memory.keys);
  if (memory.d_key % 2 != 0)
    core::bad_config("memory-layer-d-key: {} is odd; give an even size", memory.d_key);
}

}  // namespace nn
