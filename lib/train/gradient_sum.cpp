#include "train/gradient_sum.h"

#include <utility>

namespace train {
namespace {

std::int64_t odd_part(std::int64_t n) {
  while (n % 2 == 0) n /= 2;
  return n;
}

// Tensors stand in a message as they do in memory of their own: what sums a gradient's squares may
// take the order from where it begins.
constexpr std::int64_t kAlign = 16;
std::int64_t aligned(std::int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

}  // namespace

GradientSum::GradientSum(const NamedWeights& weights, std::int64_t own, ranks::Group& group,
                         ranks::Sum how)
    : weights_(weights),
      group_(group),
      how_(how),
      own_(own),
      block_(how == ranks::Sum::fast ? own : odd_part(own)) {
  for (const auto& [name, weight] : weights_) torch::Tensor(weight).mutable_grad().reset();
}

std::int64_t GradientSum::held(std::int64_t own, ranks::Sum how) {
  std::int64_t branches = 1;  // of 1, 2, 4, ... blocks, and a leaf
  if (how == ranks::Sum::tree)
    for (; own % 2 == 0; own /= 2) ++branches;
  return branches;
}

void GradientSum::add(const torch::Tensor& nats, std::int64_t scored) {
  nats_ = nats_.defined() ? nats_ + nats : nats;
  scored_ += scored;
  if (++seen_ % block_ != 0) return;
  Branch branch = take();
  std::size_t level = 0;
  for (; level < tree_.size() && tree_[level]; ++level) {
    add_to(*tree_[level], branch);
    branch = std::move(*tree_[level]);
    tree_[level].reset();
  }
  if (level == tree_.size()) tree_.emplace_back();
  tree_[level] = std::move(branch);
}

// The gradients of a block, off the weights; where nothing is to be added to them they stay.
GradientSum::Branch GradientSum::take() {
  Branch branch;
  branch.nats = std::exchange(nats_, torch::Tensor());
  if (block_ == own_ && group_.is_alone()) return branch;
  for (const auto& [name, weight] : weights_) {
    auto& gradient = torch::Tensor(weight).mutable_grad();
    branch.gradients.push_back(gradient.defined() ? gradient.contiguous()
                                                  : torch::zeros_like(weight));
    gradient.reset();
  }
  return branch;
}

void GradientSum::add_to(Branch& left, const Branch& right) const {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < left.gradients.size(); ++i)
    left.gradients[i].add_(right.gradients[i]);
  left.nats = left.nats + right.nats;
}

void GradientSum::sum_over_ranks(Branch& all) {
  const torch::NoGradGuard no_grad;
  auto figures = torch::stack(
      {all.nats.to(torch::kCPU), torch::full({}, static_cast<double>(scored_), torch::kFloat64)});
  group_.sum(figures, how_);
  all.nats = figures[0].to(all.nats.device());
  scored_ = static_cast<std::int64_t>(figures[1].item<double>());

  std::int64_t n = 0;
  for (const auto& [name, weight] : weights_) n += aligned(weight.numel());
  const auto options = all.gradients.front().options();
  auto flat = torch::zeros({n}, options.requires_grad(false));
  std::vector<torch::Tensor> parts;
  std::int64_t begin = 0;
  for (const auto& [name, weight] : weights_) {
    parts.push_back(flat.narrow(0, begin, weight.numel()).view(weight.sizes()));
    begin += aligned(weight.numel());
  }
  at::_foreach_copy_(parts, all.gradients);
  all.gradients = std::move(parts);
  if (flat.is_cpu()) {
    group_.sum(flat, how_);
    return;
  }
  // One copy each way, and through memory that the device reaches by itself.
  const bool pinned = flat.is_cuda();
  auto host =
      torch::empty({n}, options.requires_grad(false).device(torch::kCPU).pinned_memory(pinned));
  host.copy_(flat);
  group_.sum(host, how_);
  flat.copy_(host, /*non_blocking=*/pinned);
}

void GradientSum::finish(Update& update) {
  Branch all = std::move(*tree_.back());
  if (!group_.is_alone()) sum_over_ranks(all);
  for (std::size_t i = 0; i < all.gradients.size(); ++i)
    torch::Tensor(weights_[i].second).mutable_grad() = all.gradients[i];
  update.loss = all.nats;
  update.scored = scored_;
}

}  // namespace train
