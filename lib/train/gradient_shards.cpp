#include "train/gradient_shards.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "train/gradient_sum.h"

namespace train {

class GradientShards::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientShards& sum, std::size_t weight) : sum_(sum), weight_(weight) {}
  void operator()(const torch::autograd::Variable& /*weight*/) override { sum_.arrived(weight_); }

 private:
  GradientShards& sum_;
  std::size_t weight_;
};

std::int64_t GradientShards::block(std::int64_t own, ranks::Sum how) {
  return how == ranks::Sum::fast ? 1 : odd_part(own);
}

GradientShards::GradientShards(Shards& shards, std::int64_t own, ranks::Group& group,
                               ranks::Sum how, Neighbours neighbours, bool early)
    : shards_(shards),
      group_(group),
      how_(how),
      neighbours_(neighbours),
      own_(own),
      block_(block(own, how)),
      arrived_(shards.weights().size()),
      taken_(shards.weights().size()),
      present_(shards.own().size()) {
  for (std::size_t i = 0; i < shards_.weights().size(); ++i) {
    torch::Tensor weight = shards_.weights()[i].second;
    weight.mutable_grad().reset();
    if (early)
      torch::autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<Hook>(*this, i));
  }
}

GradientShards::~GradientShards() {
  for (const auto& [name, weight] : shards_.weights())
    torch::autograd::impl::set_post_acc_grad_hooks(weight, nullptr);
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

void GradientShards::take(const std::vector<std::size_t>& which,
                          std::vector<torch::Tensor>& gradients) {
  if (!completes()) return;
  reduce(which, gradients);
  for (auto& gradient : gradients) gradient.reset();
  for (const auto i : which) taken_[i] = true;
}

void GradientShards::reduce(const std::vector<std::size_t>& which, const Tensors& fresh) {
  const torch::NoGradGuard no_grad;
  Tensors gradients;
  for (std::size_t at = 0; at < which.size(); ++at) {
    const auto i = which[at];
    torch::Tensor weight = shards_.weights()[i].second;
    auto sum = std::exchange(weight.mutable_grad(), torch::Tensor());
    if (!fresh.empty() && fresh[at].defined()) sum = sum.defined() ? sum + fresh[at] : fresh[at];
    sum = sum.defined() ? sum.contiguous() : torch::zeros_like(weight);
    for (auto& earlier : whole_) {
      earlier[i].add_(sum);
      sum = std::exchange(earlier[i], torch::Tensor());
    }
    gradients.push_back(sum);
  }
  const auto own = shards_.own_of(which);
  auto sums = shards_.reduce(which, gradients, how_);
  for (std::size_t i = 0; i < own.size(); ++i) present_[own[i]] = std::move(sums[i]);
}

void GradientShards::add(const torch::Tensor& nats, std::int64_t scored) {
  nats_ = nats_.defined() ? nats_ + nats : nats;
  scored_ += scored;
  const bool complete = completes();
  if (complete) {
    while (next_ < shards_.buckets().size()) reduce_next();
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
  std::size_t level = 0;
  const bool pairs = how_ == ranks::Sum::tree;
  for (; level < whole_.size() && !whole_[level].empty(); ++level) {
    for (std::size_t i = 0; i < gradients.size(); ++i) whole_[level][i].add_(gradients[i]);
    gradients = std::exchange(whole_[level], {});
    if (!pairs) break;
  }
  if (level == whole_.size()) whole_.emplace_back();
  whole_[level] = std::move(gradients);
}

void GradientShards::add_block() {
  const torch::NoGradGuard no_grad;
  Tensors sums = std::exchange(present_, Tensors(shards_.own().size()));
  if (sums.empty()) return;
  std::size_t level = 0;
  const bool pairs = how_ == ranks::Sum::tree;
  for (; level < summed_.size() && !summed_[level].empty(); ++level) {
    for (std::size_t i = 0; i < sums.size(); ++i) summed_[level][i].add_(sums[i]);
    sums = std::exchange(summed_[level], {});
    if (!pairs) break;
  }
  if (level == summed_.size()) summed_.emplace_back();
  summed_[level] = std::move(sums);
}

void GradientShards::finish(Update& update) {
  const torch::NoGradGuard no_grad;
  // By pairs of blocks, pairs of pairs, ...: as a tree fills, or in turn.
  const auto added = [&](Tensors blocks) {
    const bool pairs = how_ == ranks::Sum::tree;
    for (std::size_t step = 1; pairs && step < blocks.size(); step *= 2)
      for (std::size_t i = 0; i + step < blocks.size(); i += 2 * step)
        blocks[i] = blocks[i] + blocks[i + step];
    for (std::size_t i = 1; !pairs && i < blocks.size(); ++i) blocks[0] = blocks[0] + blocks[i];
    return blocks[0];
  };
  const auto device = block_nats_[0].device();
  if (neighbours_ == Neighbours::own) block_nats_ = {added(block_nats_)};
  auto figures = block_nats_;
  for (auto& figure : figures) figure = figure.to(torch::kCPU);
  figures.push_back(torch::full({}, static_cast<double>(scored_), torch::kFloat64));
  auto all = torch::stack(figures);
  group_.sum(all, how_);
  figures = all.unbind();
  update.scored = static_cast<std::int64_t>(figures.back().item<double>());
  figures.pop_back();
  update.loss = added(figures).clone().to(device);
  for (std::size_t i = 0; i < shards_.own().size(); ++i) {
    torch::Tensor own = shards_.own()[i].second;
    own.mutable_grad() = summed_.back()[i].view(own.sizes());
  }
}

}  // namespace train
