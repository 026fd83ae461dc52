// Gradients summed over processes that each keep their pieces: the bytes of the plain sum.

#include "train/gradient_shards.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "train/gradient_sum.h"
#include "unit/ranks/nccl_stub.h"
#include "unit/ranks/processes.h"

namespace {

using train::Neighbours;

train::NamedWeights weights_of_shapes() {
  return {{"a", torch::zeros({70000}).requires_grad_()},
      {"b", torch::zeros({3, 5}).requires_grad_()},
      {"c", torch::zeros({2, 40000}).requires_grad_()}};
}

// Adds the gradient of a leaf; "b" has one in leaf 1 alone.
torch::Tensor backward(const train::NamedWeights& weights, std::int64_t leaf) {
  torch::manual_seed(static_cast<std::uint64_t>(leaf));
  auto loss = torch::zeros({});
  for (const auto& [name, weight] : weights)
    if (name != "b" || leaf == 1) loss = loss + (weight * torch::randn(weight.sizes())).sum();
  loss.backward();
  return torch::full({}, 1.1 * static_cast<double>(leaf) + 0.3, torch::kFloat64);
}

// "same", or what of `leaves` differs from the sum of one process.
std::string difference_to_one(
    ranks::Group& rank, std::int64_t leaves, ranks::Sum how, Neighbours neighbours, bool early) {
  const std::shared_ptr<ranks::Group> group(&rank, [](ranks::Group*) {});
  const auto want = weights_of_shapes(), got = weights_of_shapes();
  const auto alone = ranks::Group::alone();
  train::GradientSum sum(want, leaves, *alone, how);
  train::Update one, parts;
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) sum.add(backward(want, leaf), 10 + leaf);
  sum.finish(one);
  train::Shards shards(got, {}, group);
  const std::int64_t own = leaves / group->size(), block = train::GradientShards::block(own, how);
  {
    train::GradientShards shared(shards, own, rank, how, neighbours, early);
    for (std::int64_t i = 0; i < own; ++i) {
      const std::int64_t leaf =
          neighbours == Neighbours::own
              ? group->rank() * own + i
              : (i / block * group->size() + group->rank()) * block + i % block;
      shared.add(backward(got, leaf), 10 + leaf);
      const bool freed = neighbours == Neighbours::own ? i + 1 == own : (i + 1) % block == 0;
      for (const auto& [name, weight] : got)
        if (freed && weight.grad().defined()) return "not freed: " + name;
    }
    shared.finish(parts);
  }
  const bool exact = how == ranks::Sum::tree && group->size() != 3;
  const auto equal = [&](const torch::Tensor& a, const torch::Tensor& b) {
    return exact ? torch::equal(a, b) : torch::allclose(a, b, 1e-5, 1e-5);
  };
  if (parts.scored != one.scored || !equal(parts.loss, one.loss)) return "loss";
  for (std::size_t i = 0; i < shards.own().size(); ++i) {
    const auto& piece = shards.own_pieces()[i];
    const auto& weight = want[piece.weight].second;
    const auto whole = weight.grad().defined() ? weight.grad() : torch::zeros_like(weight);
    if (!equal(shards.own()[i].second.grad().flatten(),
            whole.flatten().slice(0, piece.begin, piece.end)))
      return want[piece.weight].first;
  }
  // Nothing is summed any more when the sum is gone.
  backward(got, 0);
  return got[0].second.grad().defined() ? "same" : "a hook is left";
}

}  // namespace

DOCTEST_TEST_CASE("gradients in pieces: the sum of one process, freed when a block is summed") {
  struct Case {
    int size;
    std::int64_t leaves;
    ranks::Sum how;
  };
  for (const auto& [size, leaves, how] :
      {Case{2, 2, ranks::Sum::tree}, Case{2, 8, ranks::Sum::tree}, Case{2, 12, ranks::Sum::tree},
          Case{4, 8, ranks::Sum::tree}, Case{3, 6, ranks::Sum::tree},
          Case{2, 6, ranks::Sum::fast}}) {
    for (const auto neighbours : {Neighbours::processes, Neighbours::own}) {
      for (const bool early : {true, false}) {
        DOCTEST_CAPTURE(size);
        DOCTEST_CAPTURE(leaves);
        DOCTEST_CAPTURE(early);
        for (const auto& rank : run_ranks(size, [&, leaves = leaves, how = how](auto& group) {
               return difference_to_one(group, leaves, how, neighbours, early);
             })) {
          DOCTEST_CHECK(rank.code == 0);
          DOCTEST_CHECK(rank.text == "same");
        }
      }
    }
  }
}

DOCTEST_TEST_CASE(
    "gradients in pieces where NCCL connects the ranks: the same, and none over Gloo") {
  if (!use_nccl_stub()) return;
  struct Case {
    int size;
    std::int64_t leaves;
    ranks::Sum how;
  };
  const std::int64_t gradient_bytes = (70000 + 3 * 5 + 2 * 40000) * std::int64_t{sizeof(float)};
  for (const auto& [size, leaves, how] :
      {Case{2, 4, ranks::Sum::tree}, Case{4, 8, ranks::Sum::tree}, Case{2, 4, ranks::Sum::fast},
          Case{3, 3, ranks::Sum::fast}}) {
    DOCTEST_CAPTURE(size);
    DOCTEST_CAPTURE(leaves);
    for (const auto& rank : run_ranks(size, [&, leaves = leaves, how = how](ranks::Group& group) {
           group.connect("nccl", torch::kCPU);
           const auto sent = nccl_stub_bytes(), written = written_bytes();
           const auto difference =
               difference_to_one(group, leaves, how, Neighbours::processes, /*early=*/true);
           // Each of a rank's leaves is sent, but for this rank's slice, which is less than all.
           if (nccl_stub_bytes() - sent < gradient_bytes / 4) return std::string("not by NCCL");
           if (written >= 0 && written_bytes() - written > 20'000) return std::string("over Gloo");
           return difference;
         })) {
      DOCTEST_CHECK(rank.code == 0);
      DOCTEST_CHECK(rank.text == "same");
    }
  }
}
