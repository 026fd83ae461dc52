#include "nn/layers/option_checks.h"

namespace nn {

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
