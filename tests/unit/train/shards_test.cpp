// Weights cut into pieces that several processes keep: steps, norm and checkpoints are those of one
// process that has all, to the bit.

#include "train/shards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "train/update.h"
#include "unit/ranks/nccl_stub.h"
#include "unit/ranks/processes.h"

namespace {

train::NamedWeights some_weights() {
  torch::manual_seed(4);
  return {{"wte.weight", torch::randn({700, 301})},  // cut among up to six processes
      {"h.0.c_fc.weight", torch::randn({6, 9})}, {"h.0.c_fc.bias", torch::randn({9})},
      {"h.1.c_fc.weight", torch::randn({300, 290})}, {"ln.weight", torch::randn({66000})}};
}

train::OptimiserOptions options_of(const std::string& optimiser) {
  train::OptimiserOptions options;
  options.optimiser = optimiser, options.momentum = 0.9;
  return options;
}

// Saves what all ranks have of a checkpoint in the folder that they share; returns its path.
std::string saved(ranks::Group& group, const model::Checkpoint& part, std::int64_t step) {
  std::string building;
  group.first_does([&] { return building = model::begin_checkpoint("run", step), 0; });
  building = group.gather(building)[0];
  std::string digest;
  if (!group.first())
    digest = model::save_part(building, static_cast<std::size_t>(group.rank()), part);
  auto digests = group.gather(digest);
  digests.erase(digests.begin());
  group.first_does([&] { return model::end_checkpoint(building, "run", step, part, digests), 0; });
  return "run/step-" + std::to_string(step);
}

// "same", or what differs on this rank after three updates, a new start among them.
std::string difference_to_one(ranks::Group& rank, const std::string& name) {
  const std::shared_ptr<ranks::Group> group(&rank, [](ranks::Group*) {});
  const auto options = options_of(name);
  const auto want = some_weights(), got = some_weights();
  const auto whole = train::make_optimiser(options, want);
  train::Shards shards(got, options, group);
  auto shared = train::make_optimiser(options, shards.own(), got);
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto gradient = torch::randn(want[i].second.sizes());
      torch::Tensor(want[i].second).mutable_grad() = gradient;
      torch::Tensor(got[i].second).mutable_grad() = gradient.clone();
    }
    const auto scale = torch::full({}, 0.5, torch::kFloat64);
    whole->step(0.1, scale);
    shards.take_gradients();
    if (!torch::equal(shards.norm(), train::gradient_norm(want))) return "norm";
    shared->step(0.1, scale);
    shards.spread();
    model::Checkpoint all, part;
    train::put_optimiser(all, *whole);
    train::put_optimiser(part, *shared);
    shards.put(part, *shared);
    const auto path = saved(rank, part, step);
    const auto joined = model::load_checkpoint(path);
    if (joined.tensors.size() != all.tensors.size()) return "moments are missing";
    for (const auto& [key, tensor] : all.tensors)
      if (!torch::equal(tensor, joined.tensor(key))) return key;
    if (step > 0) continue;
    shared = train::make_optimiser(options, shards.own(), got);
    shards.get(model::open_checkpoint(path), *shared);
  }
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!torch::equal(want[i].second, got[i].second)) return want[i].first;
  return "same";
}

}  // namespace

DOCTEST_TEST_CASE("pieces of weights: each number once, in nearly equal shares") {
  const auto weights = some_weights();
  std::int64_t total = 0;
  for (const auto& [name, weight] : weights) total += weight.numel();
  for (const std::string name : {"adamw", "muon"}) {
    for (const std::int64_t ranks : {1, 2, 3, 4, 64}) {
      DOCTEST_CAPTURE(ranks);
      const auto pieces = train::cut_in_pieces(weights, options_of(name), ranks);
      DOCTEST_REQUIRE(std::ssize(pieces) == ranks);
      std::vector<std::vector<int>> times;
      for (const auto& [name, weight] : weights)
        times.emplace_back(static_cast<std::size_t>(weight.numel()));
      for (const auto& of_rank : pieces) {
        std::int64_t size = 0;
        for (const auto& piece : of_rank) {
          for (auto i = piece.begin; i < piece.end; ++i)
            ++times[piece.weight][static_cast<std::size_t>(i)];
          size += piece.size();
          if (name == "muon" && piece.weight == 3) DOCTEST_CHECK(piece.size() == 300 * 290);
        }
        if (name == "adamw" && ranks <= 2)
          DOCTEST_CHECK(size * ranks < total + ranks * train::kNormBlock * 5);
      }
      for (const auto& of_weight : times)
        DOCTEST_CHECK(std::count(of_weight.begin(), of_weight.end(), 1) == std::ssize(of_weight));
    }
  }
}

DOCTEST_TEST_CASE("an optimiser's pieces: the weights and the checkpoint of one that has all") {
  for (const std::string name : {"adamw", "radam", "nag", "muon"}) {
    for (const int size : {2, 3}) {
      DOCTEST_CAPTURE(name);
      DOCTEST_CAPTURE(size);
      for (const auto& rank :
          run_ranks(size, [&](ranks::Group& group) { return difference_to_one(group, name); })) {
        DOCTEST_CHECK(rank.code == 0);
        DOCTEST_CHECK(rank.text == "same");
      }
    }
  }
}

DOCTEST_TEST_CASE("an optimiser's pieces where NCCL connects the ranks: the same") {
  if (!use_nccl_stub()) return;
  for (const std::string name : {"adamw", "muon"}) {
    for (const int size : {2, 4}) {
      DOCTEST_CAPTURE(name);
      DOCTEST_CAPTURE(size);
      for (const auto& rank : run_ranks(size, [&](ranks::Group& group) {
             group.connect("nccl", torch::kCPU);
             return difference_to_one(group, name);
           })) {
        DOCTEST_CHECK(rank.code == 0);
        DOCTEST_CHECK(rank.text == "same");
      }
    }
  }
}
