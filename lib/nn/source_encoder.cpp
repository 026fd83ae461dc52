#include "nn/source_encoder.h"

#include <string>

namespace nn {

SourceEncoder::SourceEncoder(const ModelOptions& options)
    : shape_(options.shape),
      options_(options.transformer),
      positions_(parse_positions(options.transformer.positions)) {
  if (positions_ == Positions::learned) {
    const Bands rows{options_.context, shape_.d_model, {}, 1};
    wpe_ = register_module("wpe", std::make_shared<Embedding>(rows));
  }
  const auto all = register_module("h", std::make_shared<torch::nn::Module>());
  for (std::int64_t i = 0; i < shape_.layers; ++i)
    blocks_.push_back(
        all->register_module(std::to_string(i), std::make_shared<Block>(shape_, options_)));
  if (options_.final_norm && options_.norm == "pre")
    ln_f_ = register_module(
        "ln_f", std::make_shared<LayerNorm>(shape_.d_model, options_.norm_epsilon, options_.bias));
}

Sight sight_of_real(const torch::Tensor& real, const torch::TensorOptions& options) {
  Sight sight;
  if (real.all().item<bool>()) return sight;
  sight.mask = torch::zeros(real.sizes(), options)
                   .masked_fill_(real.to(options.device()).logical_not(), kHidden)
                   .unsqueeze(1)
                   .unsqueeze(1);
  return sight;
}

Sight SourceEncoder::make_sight(const KvCache& cache, const torch::TensorOptions& options) const {
  Sight sight = sight_of_real(cache.real(), options);
  const auto& place = cache.before();
  if (positions_ == Positions::rope)
    sight.rotation.emplace(place, shape_.d_model / shape_.heads, options);
  if (positions_ == Positions::alibi) {
    const auto distance = (place.unsqueeze(2) - place.unsqueeze(1)).abs().unsqueeze(1);
    const auto bias =
        (-alibi_slopes(shape_.heads).view({1, shape_.heads, 1, 1}) * distance).to(options);
    sight.mask = sight.mask.defined() ? sight.mask + bias : bias;
  }
  return sight;
}

torch::Tensor SourceEncoder::forward(const torch::Tensor& source, Embedding& words) {
  Batch batch;
  batch.inputs = source;
  const auto host = source.cpu();
  batch.place.run = torch::zeros_like(host).masked_fill_(host < 0, -1);
  std::optional<std::int64_t> context;
  if (wpe_) context = options_.context;
  KvCache cache(batch, nullptr, context);

  auto x = words.forward(source.clamp_min(0));
  const auto options = x.options().requires_grad(false);
  if (wpe_) x = x + wpe_->forward(cache.before().to(source.device()));
  if (positions_ == Positions::sinusoidal)
    x = x + sinusoids(cache.before(), shape_.d_model).to(options);
  x = dropped(x, shape_.dropout, is_training());
  const Sight sight = make_sight(cache, options);
  for (const auto& block : blocks_) x = block->forward(x, sight, cache, "", nullptr);
  return ln_f_ ? ln_f_->forward(x) : x;
}

}  // namespace nn
