#include "train/gradient_buckets.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>

namespace train {

// Runs when a backward pass has added to a weight's gradient.
struct GradientBuckets::Hook : torch::autograd::PostAccumulateGradHook {
  Hook(GradientBuckets& of, std::size_t of_weight) : buckets(of), weight(of_weight) {}
  void operator()(const torch::Tensor& /*tensor*/) override { buckets.completed(weight); }
  GradientBuckets& buckets;
  std::size_t weight;
};

GradientBuckets::GradientBuckets(const NamedWeights& weights, ranks::Group& group, ranks::Sum how,
                                 std::int64_t bucket_bytes)
    : weights_(weights), group_(group), how_(how), bucket_of_(weights.size()) {
  for (std::size_t i = weights.size(); i-- > 0;) {
    const auto& weight = weights[i].second;
    const auto elements = aligned_elements(weight.numel());
    const auto bytes = [&](std::int64_t n) {
      return n * static_cast<std::int64_t>(weight.element_size());
    };
    if (buckets_.empty() || bytes(buckets_.back().elements + elements) > bucket_bytes)
      buckets_.emplace_back();
    buckets_.back().weights.push_back(i);
    buckets_.back().elements += elements;
    bucket_of_[i] = buckets_.size() - 1;
    if (weight.is_leaf() && weight.requires_grad())
      torch::autograd::impl::set_post_acc_grad_hooks(weight, std::make_unique<Hook>(*this, i));
  }
  const auto device = weights.front().second.device();
  if (!device.is_cpu())
    beside_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, true);
}

GradientBuckets::~GradientBuckets() {
  for (const auto& [name, weight] : weights_)
    if (weight.is_leaf() && weight.requires_grad())
      torch::autograd::impl::set_post_acc_grad_hooks(weight, nullptr);
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

// On the stream beside, behind what the current one has to do.
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
  if (!beside_) return group_.sum(bucket.flat, how_);
  const c10::impl::VirtualGuardImpl streams(like.device().type());
  c10::Event copied(like.device().type());
  copied.record(streams.getStream(like.device()));
  copied.block(*beside_);
  const c10::StreamGuard on(*beside_);
  group_.sum(bucket.flat, how_);
}

// Later work on the current stream follows what is on the one beside.
void GradientBuckets::wait_for_sums() {
  if (!beside_) return;
  c10::Event summed(beside_->device_type());
  summed.record(*beside_);
  summed.block(c10::impl::VirtualGuardImpl(beside_->device_type()).getStream(beside_->device()));
}

void GradientBuckets::finish() {
  armed_ = false;
  for (; started_ < buckets_.size(); ++started_) start(buckets_[started_]);
  wait_for_sums();
  if (group_.any(late_ ? 1 : 0) != 0) {
    overlaps_ = false;
    for (auto& bucket : buckets_) start(bucket);
    wait_for_sums();
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
