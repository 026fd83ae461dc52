#include "nn/layers/memory_networks.h"

#include <algorithm>
#include <utility>

namespace nn {
namespace {

ProductKeyShape product_keys(const ShapeOptions& shape, const MemoryLayerOptions& memory) {
  const auto d_key =
      memory.d_key > 0 ? memory.d_key : 2 * std::max<std::int64_t>(1, shape.d_model / 4);
  return {shape.d_model, memory.heads, memory.keys, memory.top_k, d_key, memory.gate};
}

}  // namespace

MemoryNetworks::MemoryNetworks(const MemoryLayerOptions& options, const ShapeOptions& shape,
                               torch::nn::Module& owner)
    : options_(options), layers_(shape.layers), shape_(product_keys(shape, options)) {
  if (options_.kind == "product-key" && options_.shared)
    pool_ = owner.register_module("memory_pool", std::make_shared<ValuePool>(shape_));
}

BlockNetwork MemoryNetworks::of(std::int64_t i) const {
  if (options_.kind != "product-key" || !options_.has(i, layers_)) return {};
  return {"memory", std::make_shared<ProductKeyMemory>(shape_, pool_)};
}

std::shared_ptr<TokenNetwork> MemoryNetworks::add(std::int64_t i, torch::nn::Module& block,
                                                  std::shared_ptr<TokenNetwork> usual) const {
  auto [name, network] = of(i);
  return block.register_module(name, network != nullptr ? network : std::move(usual));
}

}  // namespace nn
