#include "train/gradient_shards.h"

#include "ranks/transport.h"

namespace train {

std::int64_t GradientShards::block(std::int64_t own, ranks::Sum how) {
  return how == ranks::Sum::fast ? 1 : odd_part(own);
}

GradientShards::GradientShards(Shards& shards, std::int64_t own, ranks::Group& group,
    ranks::Sum how, Neighbours neighbours, bool early)
    : shards_(shards), group_(group), how_(how), neighbours_(neighbours), own_(own),
      block_(block(own, how)), arrived_(shards.weights().size()), taken_(shards.weights().size()),
      present_(shards.own().size()) {
  for (const auto& [name, weight] : shards_.weights()) torch::Tensor(weight).mutable_grad().reset();
  if (early) hooks_.emplace(shards_.weights(), [this](std::size_t weight) { arrived(weight); });
}

bool GradientShards::completes() const {
  return neighbours_ == Neighbours::own ? seen_ + 1 == own_ : (seen_ + 1) % block_ == 0;
}

void GradientShards::arrived(std::size_t weight) {
  if (!completes()) return;
  arrived_[weight] = true;
  // In the same order on all processes, whose backward passes may leave out different weights.
  const auto& buckets = shards_.buckets();
  while (next_ < buckets.size() && std::all_of(buckets[next_].begin(), buckets[next_].end(),
                                       [&](auto i) { return arrived_[i]; }))
    reduce_next();
}

void GradientShards::reduce_next() {
  auto which = shards_.buckets()[next_++];
  std::erase_if(which, [&](auto i) { return taken_[i]; });
  if (!which.empty()) reduce(which, {});
}

void GradientShards::take(
    const std::vector<std::size_t>& which, std::vector<torch::Tensor>& gradients) {
  if (!completes()) return;
  reduce(which, std::exchange(gradients, Tensors(gradients.size())));
  for (const auto i : which) taken_[i] = true;
}

void GradientShards::reduce(const std::vector<std::size_t>& which, Tensors fresh) {
  const torch::NoGradGuard no_grad;
  Tensors gradients;
  for (std::size_t at = 0; at < which.size(); ++at) {
    const auto i = which[at];
    torch::Tensor weight = shards_.weights()[i].second;
    auto sum = std::exchange(weight.mutable_grad(), torch::Tensor());
    if (!fresh.empty() && fresh[at].defined()) {
      const auto own = std::exchange(fresh[at], torch::Tensor());
      sum = sum.defined() ? sum + own : own;
    }
    sum = sum.defined() ? sum.contiguous() : torch::zeros_like(weight);
    for (auto& earlier : whole_) {
      earlier[i].add_(sum);
      sum = std::exchange(earlier[i], torch::Tensor());
    }
    gradients.push_back(sum);
  }
  const auto own = shards_.own_of(which);
  auto sums = shards_.reduce(which, std::move(gradients), how_);
  for (std::size_t i = 0; i < own.size(); ++i) present_[own[i]] = std::move(sums[i]);
}

void GradientShards::add(const torch::Tensor& nats, std::int64_t scored) {
  nats_ = nats_.defined() ? nats_ + nats : nats;
  scored_ += scored;
  const bool complete = completes();
  if (complete) {
    while (next_ < shards_.buckets().size()) reduce_next();
    shards_.follow_sums();
    add_block();
    next_ = 0;
    std::fill(arrived_.begin(), arrived_.end(), false);
    std::fill(taken_.begin(), taken_.end(), false);
  }
  ++seen_;
  if (seen_ % block_ != 0) return;
  block_nats_.push_back(std::exchange(nats_, torch::Tensor()));
  if (!complete && neighbours_ == Neighbours::own) keep_whole();
}

// The whole gradients of a block, off the weights.
void GradientShards::keep_whole() {
  const torch::NoGradGuard no_grad;
  Tensors gradients;
  for (const auto& [name, weight] : shards_.weights()) {
    auto& gradient = torch::Tensor(weight).mutable_grad();
    gradients.push_back(gradient.defined() ? gradient.contiguous() : torch::zeros_like(weight));
    gradient.reset();
  }
  add_to(whole_, std::move(gradients));
}

void GradientShards::add_block() {
  const torch::NoGradGuard no_grad;
  Tensors sums = std::exchange(present_, Tensors(shards_.own().size()));
  if (!sums.empty()) add_to(summed_, std::move(sums));
}

// Adds a block to levels [k] of 2^k blocks; without a tree all are on one level.
void GradientShards::add_to(std::vector<Tensors>& levels, Tensors block) const {
  std::size_t level = 0;
  for (; level < levels.size() && !levels[level].empty(); ++level) {
    for (std::size_t i = 0; i < block.size(); ++i) levels[level][i].add_(block[i]);
    block = std::exchange(levels[level], {});
    if (how_ != ranks::Sum::tree) break;
  }
  if (level == levels.size()) levels.emplace_back();
  levels[level] = std::move(block);
}

void GradientShards::finish(Update& update) {
  const torch::NoGradGuard no_grad;
  const auto added = [&](const Tensors& blocks) {
    ranks::add_up(blocks, how_ == ranks::Sum::tree);
    return blocks[0];
  };
  if (neighbours_ == Neighbours::own) block_nats_ = {added(block_nats_)};
  auto nats = torch::stack(block_nats_);
  sum_figures(nats, scored_, group_, how_);
  update.scored = scored_;
  update.loss = added(nats.unbind()).clone();
  for (std::size_t i = 0; i < shards_.own().size(); ++i) {
    torch::Tensor own = shards_.own()[i].second;
    own.mutable_grad() = summed_.back()[i].view(own.sizes());
  }
}

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
