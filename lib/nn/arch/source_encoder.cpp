#include "nn/arch/source_encoder.h"

namespace nn {

SourceEncoder::SourceEncoder(const ModelOptions& options) : stack_(options) {
  stack_.register_positions(*this);
  stack_.register_blocks(*this, /*read_sources=*/false);
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
  const ShapeOptions& shape = stack_.shape();
  sight.rotation = stack_.rotation(place, 0, options);
  if (stack_.positions() == Positions::alibi) {
    const auto distance = (place.unsqueeze(2) - place.unsqueeze(1)).abs().unsqueeze(1);
    const auto bias =
        (-alibi_slopes(shape.heads).view({1, shape.heads, 1, 1}) * distance).to(options);
    sight.mask = sight.mask.defined() ? sight.mask + bias : bias;
  }
  return sight;
}

torch::Tensor SourceEncoder::forward(const torch::Tensor& source, Embedding& words) {
  Batch batch;
  batch.inputs = source;
  const auto host = source.cpu();
  batch.place.run = torch::zeros_like(host).masked_fill_(host < 0, -1);
  KvCache cache(batch, nullptr, stack_.context());
  auto x = stack_.add_positions(words.forward(source.clamp_min(0)), cache.before());
  x = dropped(x, stack_.shape().dropout, is_training());
  const Sight sight = make_sight(cache, x.options().requires_grad(false));
  return stack_.forward(x, {sight}, cache, {}, nullptr);
}

}  // namespace nn
