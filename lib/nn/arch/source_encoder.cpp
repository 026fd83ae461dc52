#include "nn/arch/source_encoder.h"

#include "nn/base/upload.h"

namespace nn {

SourceEncoder::SourceEncoder(const ModelOptions& options) : stack_(options) {
  stack_.register_positions(*this);
  stack_.register_blocks(*this, /*read_sources=*/false);
}

Visibility visibility_of_real(const torch::Tensor& real, const torch::TensorOptions& options) {
  Visibility visibility;
  if (real.is_cpu() && real.all().item<bool>()) return visibility;
  visibility.mask = torch::zeros(real.sizes(), options)
                        .masked_fill_(upload(real.logical_not(), options.device()), kHidden)
                        .unsqueeze(1)
                        .unsqueeze(1);
  return visibility;
}

Visibility SourceEncoder::make_visibility(const KvCache& cache,
                                          const torch::TensorOptions& options) const {
  Visibility visibility = visibility_of_real(cache.real(), options);
  const auto& place = cache.before();
  const ShapeOptions& shape = stack_.shape();
  visibility.rotation = stack_.rotation(place, 0, options);
  if (stack_.positions() == Positions::alibi) {
    const auto distance = (place.unsqueeze(2) - place.unsqueeze(1)).abs().unsqueeze(1);
    const auto bias =
        upload(-alibi_slopes(shape.heads).view({1, shape.heads, 1, 1}) * distance, options);
    visibility.mask = visibility.mask.defined() ? visibility.mask + bias : bias;
  }
  return visibility;
}

torch::Tensor SourceEncoder::forward(const torch::Tensor& source, const torch::Tensor& real,
                                     Embedding& words) {
  Batch batch;
  batch.inputs = source;
  batch.place.run = real.to(torch::kInt64) - 1;
  KvCache cache(batch, nullptr, stack_.context());
  auto x = stack_.add_positions(words.forward(source.clamp_min(0)), cache.before());
  x = dropped(x, stack_.shape().dropout, is_training());
  const Visibility visibility = make_visibility(cache, x.options().requires_grad(false));
  return stack_.forward(x, {visibility}, cache, {}, nullptr);
}

}  // namespace nn
