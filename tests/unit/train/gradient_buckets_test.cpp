// Sums in buckets by NCCL's transport over a library with its interface that computes on the CPU
// (tests/nccl).

#include "train/gradient_sum.h"

#include <doctest/doctest.h>

#include <optional>

#include "unit/ranks/nccl_stub.h"
#include "unit/ranks/processes.h"

namespace {

constexpr std::int64_t kSide = 24, kLayers = 6;

train::NamedWeights layers() {
  train::NamedWeights weights;
  torch::manual_seed(3);
  for (std::int64_t i = 0; i < kLayers; ++i)
    weights.emplace_back(
        "w" + std::to_string(i), (0.3 * torch::randn({kSide, kSide})).requires_grad_());
  weights.emplace_back("unused", torch::zeros({5}).requires_grad_());
  return weights;
}

// Another one for each leaf.
torch::Tensor loss_of(const train::NamedWeights& weights, std::int64_t leaf) {
  torch::manual_seed(static_cast<std::uint64_t>(100 + leaf));
  auto x = torch::randn({4, kSide});
  for (std::int64_t i = 0; i < kLayers; ++i)
    x = x.matmul(weights[static_cast<std::size_t>(i)].second).tanh();
  return x.square().sum();
}

std::string gradient_bytes(const train::NamedWeights& weights) {
  std::string bytes;
  for (const auto& [name, weight] : weights) {
    const auto gradient = weight.grad().contiguous();
    bytes.append(static_cast<const char*>(gradient.const_data_ptr()), gradient.nbytes());
  }
  return bytes;
}

// The gradients of this rank's share of `leaves` losses, summed over ranks.
std::string sum_of_leaves(
    ranks::Group& group, std::int64_t leaves, ranks::Sum how, std::int64_t bucket_bytes) {
  const auto weights = layers();
  std::optional<train::GradientBuckets> buckets;
  if (group.connects(torch::kCPU)) buckets.emplace(weights, group, how, bucket_bytes);
  const std::int64_t own = leaves / group.size(), first = group.rank() * own;
  train::GradientSum sum(weights, own, group, how, buckets ? &*buckets : nullptr);
  for (std::int64_t leaf = first; leaf < first + own; ++leaf) {
    const auto loss = loss_of(weights, leaf);
    sum.begin_leaf();
    loss.backward();
    sum.add(loss.detach().to(torch::kFloat64), 1);
  }
  train::Update update;
  sum.finish(update);
  return gradient_bytes(weights) + std::to_string(update.scored) + " " +
         std::to_string(update.loss.item<double>());
}

}  // namespace

DOCTEST_TEST_CASE(
    "a sum in buckets beside the backward pass has the bytes of one through the host") {
  if (!use_nccl_stub()) return;
  struct Case {
    int size;
    std::int64_t leaves, bucket_bytes;
  };
  for (const auto& [size, leaves, bucket_bytes] :
      {Case{2, 2, 1}, Case{2, 4, 6'000}, Case{2, 2, 100'000'000}, Case{4, 4, 6'000}}) {
    const auto plainly = [leaves = leaves](ranks::Group& group) {
      return sum_of_leaves(group, leaves, ranks::Sum::tree, 1);
    };
    const auto in_buckets = [leaves = leaves, bytes = bucket_bytes](ranks::Group& group) {
      group.connect("nccl", torch::kCPU);
      return sum_of_leaves(group, leaves, ranks::Sum::tree, bytes);
    };
    const auto whole = run_ranks(size, plainly)[0].text;
    for (const auto& rank : run_ranks(size, in_buckets)) {
      DOCTEST_CHECK(rank.code == 0);
      DOCTEST_CHECK((rank.text == whole));
    }
  }
}

DOCTEST_TEST_CASE("buckets are summed before the backward pass has ended, in the order of layers") {
  if (!use_nccl_stub()) return;
  const auto body = [](ranks::Group& group) {
    group.connect("nccl", torch::kCPU);
    auto weights = layers();
    weights.pop_back();  // the last weight, whose bucket is the first, would have no gradient
    train::GradientBuckets buckets(weights, group, ranks::Sum::fast, 1);
    std::string seen;
    auto x = torch::ones({2, kSide});
    for (const auto& [name, weight] : weights) {
      x = x.matmul(weight).tanh();
      x.register_hook([&](const torch::Tensor& /*gradient*/) {
        seen += std::to_string(buckets.overlapped()) + " ";
      });
    }
    buckets.arm();
    x.sum().backward();
    seen += std::to_string(buckets.overlapped());
    buckets.finish();
    return seen;
  };
  for (const auto& rank : run_ranks(2, body)) DOCTEST_CHECK(rank.text == "0 1 2 3 4 5 6");
}

DOCTEST_TEST_CASE("a gradient that comes late on one rank is summed again, on all") {
  if (!use_nccl_stub()) return;
  const auto body = [](ranks::Group& group) {
    group.connect("nccl", torch::kCPU);
    auto weights = layers();
    weights.pop_back();
    train::GradientBuckets buckets(weights, group, ranks::Sum::tree, 1);
    std::string text;
    for (int step = 0; step < 2; ++step) {
      for (auto& [name, weight] : weights) weight.mutable_grad().reset();
      buckets.arm();
      loss_of(weights, group.rank()).backward();
      text += std::to_string(buckets.overlapped()) + " ";
      if (group.rank() == 0) loss_of(weights, 7).backward();
      buckets.finish();
      if (step == 1) text += gradient_bytes(weights);
    }
    return text;
  };
  const auto expected = [](ranks::Group& /*alone*/) {
    auto weights = layers();
    weights.pop_back();
    std::vector<torch::Tensor> sum;
    for (const auto leaf : {0, 7, 1}) {
      for (const auto& [name, weight] : weights) torch::Tensor(weight).mutable_grad().reset();
      loss_of(weights, leaf).backward();
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto gradient = weights[i].second.grad();
        const auto own = gradient.defined() ? gradient : torch::zeros_like(weights[i].second);
        if (sum.size() <= i) sum.push_back(own.clone());
        else sum[i] += own;
      }
    }
    std::string bytes;
    for (const auto& each : sum)
      bytes.append(static_cast<const char*>(each.const_data_ptr()), each.nbytes());
    return bytes;
  };
  const auto all = run_ranks(2, body);
  const auto whole =
      "6 0 " + run_ranks(1, expected)[0].text;  // the second time nothing is overlapped
  for (const auto& rank : all) {
    DOCTEST_CHECK(rank.code == 0);
    DOCTEST_CHECK((rank.text == whole));
  }
}
