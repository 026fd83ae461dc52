#include "train/lent_weights.h"

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

std::size_t LentWeights::index_of(const std::vector<torch::Tensor>& weights) const {
  return block_of_.at(weights.at(0).unsafeGetTensorImpl());
}

void LentWeights::fetch(Block& block) {
  block.arrival = shards_.fetch(block.weights);
  block.here = true;
}

void LentWeights::drop(Block& block) {
  block.arrival.follow();
  shards_.drop(block.weights);
  block.here = false;
}

LentWeights::Block* LentWeights::next_after(std::size_t block) {
  const bool back = block + 1 == blocks_.size() || (before_ && *before_ > block);
  if (back && block == 0) return nullptr;
  Block& next = blocks_[back ? block - 1 : block + 1];
  return next.here ? nullptr : &next;
}

void LentWeights::lend(const std::vector<torch::Tensor>& weights) {
  const auto index = index_of(weights);
  Block& block = blocks_[index];
  if (block.lent++ > 0) return;
  if (!block.here) fetch(block);
  block.arrival.follow();
  if (shards_.fetches_ahead())
    if (auto* const next = next_after(index)) fetch(*next);
  before_ = index;
}

void LentWeights::take_back(const std::vector<torch::Tensor>& weights) {
  Block& block = blocks_[index_of(weights)];
  if (--block.lent == 0) drop(block);
}

void LentWeights::offer(
    const std::vector<torch::Tensor>& weights, std::vector<torch::Tensor>& gradients) {
  if (sum_ != nullptr) sum_->take(blocks_[index_of(weights)].weights, gradients);
}

void LentWeights::take_all_back() {
  for (auto& block : blocks_) {
    if (block.here) drop(block);
    block.lent = 0;
  }
  before_.reset();
}

void LentWeights::fetch_all() {
  for (const auto& block : blocks_) shards_.fetch_on_first(block.weights);
}

void LentWeights::drop_all() {
  for (const auto& block : blocks_) shards_.drop(block.weights);
}

}  // namespace train
