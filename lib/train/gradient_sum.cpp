#include "train/gradient_sum.h"

#include "nn/ops/gathered_sum.h"

namespace train {
namespace {

// Of the form that the others' gradients have.
torch::Tensor no_gradient(const std::string& name, const torch::Tensor& weight) {
  const auto options = weight.options().requires_grad(false);
  if (!is_memory_table(name) || !weight.is_cpu()) return torch::zeros_like(weight, options);
  return nn::row_gradient(
      torch::empty({0}, torch::kInt64), torch::empty({0, weight.size(1)}, options), weight.sizes());
}

// The rows that any process names, ascending, each once. Collective.
torch::Tensor rows_of_all(const torch::Tensor& own, ranks::Group& group) {
  const auto rows = own.contiguous();
  const std::string bytes(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes());
  std::vector<torch::Tensor> all{torch::empty({0}, torch::kInt64)};
  for (const auto& text : group.gather(bytes)) {
    auto theirs = torch::empty(
        {static_cast<std::int64_t>(text.size() / sizeof(std::int64_t))}, torch::kInt64);
    std::memcpy(theirs.data_ptr(), text.data(), theirs.nbytes());
    all.push_back(theirs);
  }
  return nn::rows_used(torch::cat(all)).rows;
}

}  // namespace

std::vector<std::vector<std::size_t>> buckets_of(const NamedWeights& weights, std::int64_t bytes) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t filled = 0;
  for (std::size_t i = weights.size(); i-- > 0;) {
    const auto& weight = weights[i].second;
    const auto own =
        aligned_elements(weight.numel()) * static_cast<std::int64_t>(weight.element_size());
    if (buckets.empty() || filled + own > bytes) buckets.emplace_back(), filled = 0;
    buckets.back().push_back(i);
    filled += own;
  }
  return buckets;
}

GradientBuckets::GradientBuckets(
    const NamedWeights& weights, ranks::Group& group, ranks::Sum how, std::int64_t bucket_bytes)
    : weights_(weights), group_(group), how_(how), bucket_of_(weights.size()),
      side_(weights.front().second.device()),
      hooks_(weights, [this](std::size_t weight) { completed(weight); }) {
  for (const auto& in_bucket : buckets_of(weights, bucket_bytes)) {
    auto& bucket = buckets_.emplace_back();
    bucket.weights = in_bucket;
    for (const auto i : in_bucket) {
      bucket.elements += aligned_elements(weights[i].second.numel());
      bucket_of_[i] = buckets_.size() - 1;
    }
  }
}

void GradientBuckets::arm() {
  overlapped_ = started_ = 0;
  late_ = false;
  armed_ = overlaps_;
  completed_.assign(weights_.size(), false);
  for (auto& bucket : buckets_) bucket.missing = bucket.weights.size();
}

void GradientBuckets::completed(std::size_t weight) {
  if (!armed_) return;
  auto& bucket = buckets_[bucket_of_[weight]];
  if (bucket_of_[weight] < started_) late_ = true;  // one whose gradient comes in several parts
  if (completed_[weight]) return;
  completed_[weight] = true;
  --bucket.missing;
  for (; started_ < buckets_.size() && buckets_[started_].missing == 0; ++started_, ++overlapped_)
    start(buckets_[started_]);
}

void GradientBuckets::start(Bucket& bucket) {
  const torch::NoGradGuard no_grad;
  const auto& like = weights_[bucket.weights.front()].second;
  std::vector<torch::Tensor> own;
  for (const auto i : bucket.weights) {
    const auto& gradient = weights_[i].second.grad();
    own.push_back(!gradient.defined()    ? torch::zeros_like(weights_[i].second)
                  : gradient.is_sparse() ? gradient.to_dense()
                                         : gradient);
  }
  bucket.flat = torch::zeros({bucket.elements}, like.options().requires_grad(false));
  bucket.parts.clear();
  std::int64_t begin = 0;
  for (const auto i : bucket.weights) {
    const auto& weight = weights_[i].second;
    bucket.parts.push_back(bucket.flat.narrow(0, begin, weight.numel()).view(weight.sizes()));
    begin += aligned_elements(weight.numel());
  }
  at::_foreach_copy_(bucket.parts, own);
  sums_ = side_.run([&] { group_.sum(bucket.flat, how_); });
}

void GradientBuckets::finish() {
  armed_ = false;
  for (; started_ < buckets_.size(); ++started_) start(buckets_[started_]);
  sums_.follow();
  if (group_.any(late_ ? 1 : 0) != 0) {
    overlaps_ = false;
    for (auto& bucket : buckets_) start(bucket);
    sums_.follow();
  }
  for (auto& bucket : buckets_) {
    for (std::size_t i = 0; i < bucket.weights.size(); ++i)
      torch::Tensor(weights_[bucket.weights[i]].second).mutable_grad() = bucket.parts[i];
    bucket.parts.clear();
    bucket.flat.reset();
  }
  started_ = 0;
  late_ = false;
}

void sum_figures(torch::Tensor& nats, std::int64_t& scored, ranks::Group& group, ranks::Sum how) {
  const torch::NoGradGuard no_grad;
  const auto place = group.reach(nats.device());
  auto count = torch::full({1}, static_cast<double>(scored), torch::kFloat64);
  auto figures = place.is_cpu() ? torch::cat({nats.to(place), count}) : nats.clone();
  group.sum(figures, how);
  if (place.is_cpu()) count = figures.narrow(0, nats.size(0), 1);
  else group.sum(count, how);
  nats = figures.narrow(0, 0, nats.size(0)).to(nats.device());
  scored = static_cast<std::int64_t>(count.item<double>());
}

GradientSum::GradientSum(const NamedWeights& weights, std::int64_t own, ranks::Group& group,
    ranks::Sum how, GradientBuckets* buckets)
    : weights_(weights), group_(group), buckets_(buckets), how_(how), own_(own),
      block_(how == ranks::Sum::fast ? own : odd_part(own)) {
  for (const auto& [name, weight] : weights_) torch::Tensor(weight).mutable_grad().reset();
}

std::int64_t GradientSum::held(std::int64_t own, ranks::Sum how) {
  std::int64_t branches = 1;  // one for 1, 2, 4, ... blocks each, and a leaf
  if (how == ranks::Sum::tree)
    for (; own % 2 == 0; own /= 2) ++branches;
  return branches;
}

void GradientSum::begin_leaf() {
  if (buckets_ != nullptr && block_ == own_ && seen_ + 1 == own_) buckets_->arm();
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

// Moves the gradients of a block off the weights. If nothing will be added to them, they stay.
GradientSum::Branch GradientSum::take() {
  Branch branch;
  branch.nats = std::exchange(nats_, torch::Tensor());
  if (block_ == own_ && (group_.is_alone() || buckets_ != nullptr)) return branch;
  for (const auto& [name, weight] : weights_) {
    auto& gradient = torch::Tensor(weight).mutable_grad();
    branch.gradients.push_back(!gradient.defined()    ? no_gradient(name, weight)
                               : gradient.is_sparse() ? nn::settled(gradient)
                                                      : gradient.contiguous());
    gradient.reset();
  }
  return branch;
}

void GradientSum::add_to(Branch& left, const Branch& right) const {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < left.gradients.size(); ++i)
    if (left.gradients[i].is_sparse() || right.gradients[i].is_sparse())
      left.gradients[i] = nn::sum_of_gradients(left.gradients[i], right.gradients[i]);
    else left.gradients[i].add_(right.gradients[i]);
  left.nats = left.nats + right.nats;
}

void GradientSum::sum_bucket(
    std::vector<torch::Tensor>& gradients, const std::vector<std::size_t>& bucket) {
  const torch::NoGradGuard no_grad;
  // Of a sparse gradient the rows that some process has, side by side.
  std::map<std::size_t, torch::Tensor> rows;
  std::vector<std::vector<std::int64_t>> sizes;
  std::int64_t n = 0;
  for (const auto i : bucket) {
    sizes.push_back(gradients[i].sizes().vec());
    if (gradients[i].is_sparse()) {
      rows[i] = rows_of_all(nn::rows_of_gradient(gradients[i]), group_);
      sizes.back()[0] = rows[i].size(0);
    }
    n += aligned_elements(c10::multiply_integers(sizes.back()));
  }
  const auto options = weights_.front().second.options().requires_grad(false);
  auto flat = torch::zeros({n}, options);
  std::vector<torch::Tensor> dense, sums;
  std::int64_t begin = 0;
  for (std::size_t at = 0; at < bucket.size(); ++at) {
    auto& gradient = gradients[bucket[at]];
    const auto size = c10::multiply_integers(sizes[at]);
    auto part = flat.narrow(0, begin, size).view(sizes[at]);
    begin += aligned_elements(size);
    if (const auto found = rows.find(bucket[at]); found != rows.end()) {
      const auto to = torch::searchsorted(found->second, nn::rows_of_gradient(gradient));
      part.index_copy_(0, to, nn::values_of_gradient(gradient));
      gradient = nn::row_gradient(found->second, part, weights_[bucket[at]].second.sizes());
    } else {
      dense.push_back(std::exchange(gradient, part)), sums.push_back(part);
    }
  }
  at::_foreach_copy_(sums, dense);
  dense.clear();
  if (flat.is_cpu()) {
    group_.sum(flat, how_);
    return;
  }
  // Copies once in each direction, through pinned memory that the device accesses directly.
  const bool pinned = flat.is_cuda();
  auto host = torch::empty({n}, options.device(torch::kCPU).pinned_memory(pinned));
  host.copy_(flat);
  group_.sum(host, how_);
  flat.copy_(host, /*non_blocking=*/pinned);
}

void GradientSum::finish(Update& update) {
  Branch all = std::move(*tree_.back());
  // A message is as small as a bucket, and replaces its gradients before it is sent.
  if (!group_.is_alone() && buckets_ == nullptr)
    for (const auto& bucket : buckets_of(weights_)) sum_bucket(all.gradients, bucket);
  for (std::size_t i = 0; i < all.gradients.size(); ++i)
    torch::Tensor(weights_[i].second).mutable_grad() = all.gradients[i];
  if (buckets_ != nullptr) buckets_->finish();
  if (!group_.is_alone()) {
    auto nats = all.nats.view({1});
    sum_figures(nats, scored_, group_, how_);
    all.nats = nats[0];
  }
  for (const auto& [name, weight] : weights_)
    if (auto& gradient = torch::Tensor(weight).mutable_grad();
        gradient.defined() && gradient.is_sparse())
      gradient = nn::settled(gradient);
  update.loss = all.nats;
  update.scored = scored_;
}

}  // namespace train
