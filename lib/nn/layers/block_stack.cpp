#include "nn/layers/block_stack.h"

#include <string>

#include "nn/layers/option_checks.h"

namespace nn {

BlockStack::BlockStack(const ModelOptions& options)
    : shape_(options.shape),
      options_(options.transformer),
      positions_(parse_positions(options.transformer.positions)) {
  check_heads(shape_);
  check_norm(options_);
  check_positions(shape_, options_);
}

void BlockStack::register_positions(torch::nn::Module& owner) {
  if (positions_ != Positions::learned) return;
  const Bands rows{options_.context, shape_.d_model, {}, 1};
  wpe_ = owner.register_module("wpe", std::make_shared<Embedding>(rows));
}

void BlockStack::register_blocks(torch::nn::Module& owner, bool read_sources) {
  const auto list = owner.register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i)
    blocks_.push_back(list->register_module(
        std::to_string(i), std::make_shared<Block>(shape_, options_, read_sources)));
  if (options_.final_norm && options_.norm == "pre")
    ln_f_ = owner.register_module(
        "ln_f", std::make_shared<LayerNorm>(shape_.d_model, options_.norm_epsilon, options_.bias));
}

torch::Tensor BlockStack::add_positions(const torch::Tensor& x, const torch::Tensor& before) const {
  if (wpe_) return x + wpe_->forward(before.to(x.device()));
  if (positions_ == Positions::sinusoidal)
    return x + sinusoids(before, shape_.d_model).to(x.options().requires_grad(false));
  return x;
}

torch::Tensor BlockStack::forward(torch::Tensor x, const Sight& sight, KvCache& cache,
                                  const std::vector<SourceView>& sources,
                                  torch::Tensor* ffn_input) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->forward(x, sight, cache, name(i), sources.empty() ? SourceView{} : sources[i],
                            i + 1 == blocks_.size() ? ffn_input : nullptr);
  return ln_f_ ? ln_f_->forward(x) : x;
}

std::optional<std::int64_t> BlockStack::context() const {
  if (positions_ == Positions::learned) return options_.context;
  return std::nullopt;
}

}  // namespace nn
