#include "train/lent_weights.h"

#include <algorithm>

namespace train {

LentWeights::LentWeights(Shards& shards, const std::vector<std::vector<torch::Tensor>>& blocks)
    : shards_(shards) {
  std::map<const void*, std::size_t> index;
  for (std::size_t i = 0; i < shards.weights().size(); ++i)
    index[shards.weights()[i].second.unsafeGetTensorImpl()] = i;
  for (const auto& weights : blocks) {
    Block block;
    for (const auto& weight : weights) {
      block.weights.push_back(index.at(weight.unsafeGetTensorImpl()));
      block_of_[weight.unsafeGetTensorImpl()] = blocks_.size();
    }
    shards_.send_away(block.weights);
    blocks_.push_back(std::move(block));
  }
}

LentWeights::Block& LentWeights::block_of(const std::vector<torch::Tensor>& weights) {
  return blocks_[block_of_.at(weights.at(0).unsafeGetTensorImpl())];
}

void LentWeights::lend(const std::vector<torch::Tensor>& weights) {
  Block& block = block_of(weights);
  if (block.lent++ == 0) shards_.fetch(block.weights);
}

void LentWeights::take_back(const std::vector<torch::Tensor>& weights) {
  Block& block = block_of(weights);
  if (--block.lent == 0) shards_.drop(block.weights);
}

void LentWeights::offer(const std::vector<torch::Tensor>& weights,
                        std::vector<torch::Tensor>& gradients) {
  if (sum_ != nullptr) sum_->take(block_of(weights).weights, gradients);
}

void LentWeights::take_all_back() {
  for (auto& block : blocks_) {
    if (block.lent > 0) shards_.drop(block.weights);
    block.lent = 0;
  }
}

void LentWeights::fetch_all() {
  for (const auto& block : blocks_) shards_.fetch(block.weights, /*first_alone=*/true);
}

void LentWeights::drop_all() {
  for (const auto& block : blocks_) shards_.drop(block.weights);
}

}  // namespace train
