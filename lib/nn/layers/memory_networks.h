#pragma once
// The layers whose feed-forward networks memories with product keys replace, by the options.

#include <cstdint>
#include <memory>

#include "nn/base/model_options.h"
#include "nn/base/torch.h"
#include "nn/layers/block.h"
#include "nn/layers/product_key_memory.h"

namespace nn {

class MemoryNetworks {
 public:
  /// Registers the shared values in `owner` as "memory_pool", if memory layers share them.
  MemoryNetworks(const MemoryLayerOptions& options, const ShapeOptions& shape,
                 torch::nn::Module& owner);
  /// Makes the memory of layer i (from 0), "memory"; without a network where layer i keeps its own.
  BlockNetwork of(std::int64_t i) const;
  /// Registers in `block`, layer i, its memory; else `usual` as "mlp".
  std::shared_ptr<TokenNetwork> add(std::int64_t i, torch::nn::Module& block,
                                    std::shared_ptr<TokenNetwork> usual) const;
  /// Returns the values that memory layers share; null: none.
  const std::shared_ptr<ValuePool>& pool() const { return pool_; }

 private:
  MemoryLayerOptions options_;
  std::int64_t layers_;
  ProductKeyShape shape_;
  std::shared_ptr<ValuePool> pool_;
};

}  // namespace nn
