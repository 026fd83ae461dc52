#include "train/optimiser_shares.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "nn/ops/row_gradient.h"

namespace train {
namespace {

// Concatenates the flattened tensors on the CPU.
torch::Tensor laid_flat(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> parts{torch::empty({0}, torch::kFloat32)};
  for (const auto& tensor : tensors) parts.push_back(tensor.detach().flatten().to(torch::kCPU));
  return torch::cat(parts);
}

}  // namespace

OptimiserShares::OptimiserShares(const NamedWeights& weights, std::shared_ptr<ranks::Group> group)
    : group_(std::move(group)), owner_(weights.size()) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return weights[a].second.numel() > weights[b].second.numel();
  });
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(group_->size()), 0);
  for (const auto i : order) {
    const auto least = std::min_element(numbers.begin(), numbers.end());
    owner_[i] = least - numbers.begin();
    *least += weights[i].second.numel();
  }
}

std::vector<bool> OptimiserShares::own() const {
  std::vector<bool> own;
  for (const auto owner : owner_) own.push_back(owner == group_->rank());
  return own;
}

void OptimiserShares::spread(const NamedWeights& weights) const {
  const torch::NoGradGuard no_grad;
  // Of a table only the rows that the step read; every process has them in its gradient.
  struct Part {
    torch::Tensor weight, rows, values;
  };
  std::vector<std::vector<Part>> parts(static_cast<std::size_t>(group_->size()));
  std::vector<std::vector<torch::Tensor>> of_rank(parts.size());
  for (std::size_t i = 0; i < owner_.size(); ++i) {
    const auto& weight = weights[i].second;
    const auto& gradient = weight.grad();
    Part part{weight, {}, weight};
    if (gradient.defined() && gradient.is_sparse()) {
      part.rows = nn::rows_of_gradient(gradient);
      part.values = weight.index_select(0, part.rows);
    }
    of_rank[static_cast<std::size_t>(owner_[i])].push_back(part.values);
    parts[static_cast<std::size_t>(owner_[i])].push_back(std::move(part));
  }
  const auto own = laid_flat(of_rank[static_cast<std::size_t>(group_->rank())]);
  const std::vector<torch::Tensor> out(of_rank.size(), own);
  std::vector<torch::Tensor> in;
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    std::int64_t n = 0;
    for (const auto& weight : of_rank[rank]) n += weight.numel();
    const bool others = static_cast<std::int64_t>(rank) != group_->rank();
    in.push_back(torch::empty({others ? n : 0}, torch::kFloat32));
  }
  group_->exchange(0, out, in);
  for (std::size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (static_cast<std::int64_t>(rank) == group_->rank()) continue;
    std::int64_t at = 0;
    for (const auto& [weight, rows, values] : parts[rank]) {
      const auto got = in[rank].narrow(0, at, values.numel()).view(values.sizes());
      at += values.numel();
      if (rows.defined())
        torch::Tensor(weight).index_copy_(0, rows, got);
      else
        torch::Tensor(weight).copy_(got);
    }
  }
}

void OptimiserShares::put(model::Checkpoint& checkpoint, const Optimiser& optimiser) const {
  struct Moment {
    std::string name;
    torch::Tensor weight;
  };
  std::vector<std::vector<Moment>> of_rank(static_cast<std::size_t>(group_->size()));
  for (std::size_t i = 0; i < owner_.size(); ++i)
    for (auto& name : optimiser.moment_names(i))
      of_rank[static_cast<std::size_t>(owner_[i])].push_back(
          {std::move(name), optimiser.weights()[i].second});
  const auto none = torch::empty({0}, torch::kFloat32);
  std::vector<torch::Tensor> out(of_rank.size(), none), in(of_rank.size(), none);
  if (!group_->first()) {
    std::vector<torch::Tensor> own;
    for (const auto& moment : of_rank[static_cast<std::size_t>(group_->rank())])
      own.push_back(optimiser.tensors().at(moment.name));
    out[0] = laid_flat(own);
  } else {
    for (std::size_t rank = 1; rank < of_rank.size(); ++rank) {
      std::int64_t n = 0;
      for (const auto& moment : of_rank[rank]) n += moment.weight.numel();
      in[rank] = torch::empty({n}, torch::kFloat32);
    }
  }
  group_->exchange(0, out, in);
  for (std::size_t rank = 1; rank < of_rank.size() && group_->first(); ++rank) {
    std::int64_t at = 0;
    for (const auto& [name, weight] : of_rank[rank]) {
      checkpoint.tensors["optimiser." + name] =
          in[rank].narrow(0, at, weight.numel()).view(weight.sizes());
      at += weight.numel();
    }
  }
}

}  // namespace train
