// An optimiser with moments divided over several processes: weights and checkpoint are
// bit-identical to those of one process.

#include "train/optimiser_shares.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "nn/ops/row_gradient.h"
#include "train/update.h"
#include "unit/ranks/processes.h"

namespace {

train::NamedWeights some_weights() {
  torch::manual_seed(4);
  return {{"wte.weight", torch::randn({40, 6})},       {"h.0.c_fc.weight", torch::randn({6, 9})},
          {"h.0.c_fc.bias", torch::randn({9})},        {"h.1.c_fc.weight", torch::randn({9, 6})},
          {"h.1.ngram.tables", torch::randn({50, 4})}, {"ln.weight", torch::randn({6})}};
}

// Returns "same", or what differs on this rank after three steps with a restart among them.
std::string difference_to_one(ranks::Group& own, const std::string& name) {
  const std::shared_ptr<ranks::Group> group(&own, [](ranks::Group*) {});
  train::OptimiserOptions options;
  options.optimiser = name, options.momentum = 0.9;
  const auto want = some_weights(), got = some_weights();
  const auto whole = train::make_optimiser(options, want);
  const train::OptimiserShares shares(got, group);
  auto shared = train::make_optimiser(options, got, shares.own());
  model::Checkpoint all;
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      auto gradient = torch::randn(want[i].second.sizes());
      if (train::is_memory_table(want[i].first))
        gradient = nn::row_gradient(torch::tensor({3 + step, 20, 41}),
                                    gradient.slice(0, 0, 3).clone(), gradient.sizes());
      torch::Tensor(want[i].second).mutable_grad() = gradient;
      torch::Tensor(got[i].second).mutable_grad() = gradient.clone();
    }
    const auto scale = torch::full({}, 0.5, torch::kFloat64);
    whole->step(0.1, scale);
    shared->step(0.1, scale);
    shares.spread(got);
    model::Checkpoint part;
    train::put_optimiser(all, *whole);
    train::put_optimiser(part, *shared);
    shares.put(part, *shared);
    if (own.first() && part.tensors.size() != all.tensors.size()) return "a moment is missing";
    if (!own.first() && part.tensors.size() >= all.tensors.size()) return "a moment is not shared";
    for (const auto& [key, tensor] : part.tensors)
      if (!torch::equal(tensor, all.tensors.at(key))) return key;
    if (step > 0) continue;
    shared = train::make_optimiser(options, got, shares.own());
    train::get_optimiser(all, *shared);
  }
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!torch::equal(want[i].second, got[i].second)) return want[i].first;
  return "same";
}

}  // namespace

DOCTEST_TEST_CASE("shares of an optimiser: the weights and the checkpoint of one that has all") {
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
