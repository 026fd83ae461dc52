// The memory of earlier segments, and its State.
#include <doctest/doctest.h>

#include <vector>

#include "nn/base/torch.h"
#include "nn/memory/entry_ring.h"
#include "same_entries.h"

namespace {

using torch::Tensor;

nn::Batch batch_of(std::int64_t steps, std::int64_t number) {
  nn::Batch batch;
  batch.targets = torch::randint(9, {3, steps}, torch::kInt64);
  const Tensor ids = torch::arange(100 * number, 100 * number + 3 * steps).view({3, steps});
  batch.place = {ids, ids + 1, ids + 2};
  return batch;
}

}  // namespace

DOCTEST_TEST_CASE("the last segments are held, the oldest first, whatever their lengths") {
  for (const std::int64_t most : {0, 1, 2, 3}) {
    nn::SegmentMemory memory(most);
    std::vector<nn::Entries> all;
    for (std::int64_t i = 0; i < 6; ++i) {
      const nn::Batch batch = batch_of(4 + i % 3, i);
      const Tensor g = torch::randn({3, batch.targets.size(1), 5});
      memory.append(g, batch);
      all.push_back(nn::Entries::of(g, batch));
      const auto held = memory.view();
      DOCTEST_REQUIRE(std::ssize(held) == std::min<std::int64_t>(most, i + 1));
      for (std::size_t k = 0; k < held.size(); ++k)
        DOCTEST_CHECK(same(held[k], all[all.size() - held.size() + k]));
    }
    memory.clear();
    DOCTEST_CHECK(memory.view().empty());
  }
}

DOCTEST_TEST_CASE("a memory of segments goes on from its State; rows that are reset hold padding") {
  nn::SegmentMemory memory(2), other(2);
  for (std::int64_t i = 0; i < 3; ++i) memory.append(torch::randn({3, 4, 5}), batch_of(4, i));
  other.state() = memory.state();
  const nn::Batch next = batch_of(4, 3);
  const Tensor g = torch::randn({3, 4, 5});
  memory.append(g, next);
  other.append(g, next);
  for (std::size_t k = 0; k < 2; ++k) DOCTEST_CHECK(same(memory.view()[k], other.view()[k]));
  for (auto& [name, tensor] : other.state().tensors) tensor = tensor.clone();
  other.state().reset(torch::tensor({false, true, false}));
  const Tensor run = other.view()[0].place.run.view({3, 4});
  DOCTEST_CHECK(torch::equal(run[1], torch::full({4}, -1, torch::kInt64)));
  DOCTEST_CHECK(torch::equal(run[2], memory.view()[0].place.run.view({3, 4})[2]));
}
