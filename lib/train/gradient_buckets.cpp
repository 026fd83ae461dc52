#include "train/gradient_buckets.h"

namespace train {

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

GradientBuckets::GradientBuckets(const NamedWeights& weights, ranks::Group& group, ranks::Sum how,
                                 std::int64_t bucket_bytes)
    : weights_(weights),
      group_(group),
      how_(how),
      bucket_of_(weights.size()),
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

}  // namespace train
