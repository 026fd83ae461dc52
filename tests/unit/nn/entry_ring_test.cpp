// The ring of memory entries, and its State.
#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "nn/base/torch.h"
#include "nn/memory/entry_ring.h"
#include "same_entries.h"

namespace {

using torch::Tensor;

nn::TokenPositions places(std::int64_t begin, std::int64_t steps, std::int64_t rows) {
  const Tensor row = torch::arange(rows).repeat({steps, 1});
  return {row, torch::zeros({steps, rows}, torch::kInt64),
      torch::arange(begin, begin + steps).unsqueeze(1).expand({steps, rows})};
}

// Appends steps [begin, begin + n): labels count up, keys are twice the label.
void append(nn::EntryRing& ring, std::int64_t begin, std::int64_t n, std::int64_t rows) {
  const Tensor labels = torch::arange(begin * rows, (begin + n) * rows).view({n, rows});
  ring.append(
      labels.to(torch::kFloat32).unsqueeze(2).expand({n, rows, 2}), labels, places(begin, n, rows));
}

}  // namespace

DOCTEST_TEST_CASE("a ring holds the last steps, oldest first, in one piece") {
  core::Rng rng(4);
  for (const std::int64_t rows : {1, 3}) {
    for (const std::int64_t capacity : {1, 5, 16, 100}) {
      nn::EntryRing ring(capacity);
      std::int64_t steps = 0;
      for (int call = 0; call < 60; ++call) {
        const auto n = static_cast<std::int64_t>(rng.below(9));
        append(ring, steps, n, rows);
        steps += n;
        const std::int64_t held = std::min(steps, capacity);
        DOCTEST_REQUIRE(ring.size() == held);
        const auto skip = static_cast<std::int64_t>(rng.below(7));
        const auto most = static_cast<std::int64_t>(rng.below(20));
        const std::int64_t last = std::max(steps - skip, steps - held);
        const std::int64_t first = std::max(last - most, steps - held);
        const nn::Entries view = ring.view(skip, most);
        const Tensor expected = torch::arange(first * rows, last * rows);
        DOCTEST_REQUIRE(torch::equal(view.labels, expected));
        DOCTEST_REQUIRE(torch::equal(view.keys.select(1, 1), expected.to(torch::kFloat32)));
        DOCTEST_REQUIRE(torch::equal(view.place.position, expected.floor_divide(rows)));
        DOCTEST_REQUIRE(torch::equal(view.place.run, expected.remainder(rows)));
        DOCTEST_REQUIRE(view.keys.is_contiguous());
      }
    }
  }
  DOCTEST_CHECK_THROWS_AS(nn::EntryRing(0), core::Error);
}

DOCTEST_TEST_CASE("segments of several rows are steps, each row's tokens side by side") {
  nn::EntryRing ring(2);
  std::vector<nn::Entries> segments;
  for (std::int64_t step = 0; step < 5; ++step) {
    const Tensor g = torch::randn({3, 4, 6}), labels = torch::randint(9, {3, 4}, torch::kInt64),
                 ids = torch::arange(12 * step, 12 * (step + 1)).view({1, 3, 4});
    ring.append(g.unsqueeze(0), labels.unsqueeze(0), {ids, ids, ids});
    segments.push_back({g.flatten(0, 1), labels.flatten(), {ids[0], ids[0], ids[0]}});
    segments.back().place = segments.back().place.flatten();
    const auto n = segments.size();
    DOCTEST_CHECK(same(ring.view(),
        n == 1 ? segments[0] : nn::Entries::concatenate({segments[n - 2], segments[n - 1]})));
  }
}

DOCTEST_TEST_CASE("selecting rows of a ring takes their past along") {
  nn::EntryRing ring(4);
  append(ring, 0, 5, 3);
  ring.select(torch::tensor({2, 2, 0}, torch::kInt64));
  const nn::Entries view = ring.view();
  DOCTEST_CHECK(torch::equal(
      view.labels, torch::tensor({5, 5, 3, 8, 8, 6, 11, 11, 9, 14, 14, 12}, torch::kInt64)));
  DOCTEST_CHECK(torch::equal(view.place.run, torch::arange(3).repeat({4})));
  ring.clear();
  DOCTEST_CHECK(ring.view().size() == 0);
  DOCTEST_CHECK(ring.size() == 0);
}

DOCTEST_TEST_CASE("a ring goes on from its State; rows that are reset hold padding") {
  nn::EntryRing ring(4);
  append(ring, 0, 7, 3);
  nn::EntryRing other(4);
  other.state() = ring.state();
  for (auto& [name, tensor] : other.state().tensors) tensor = tensor.clone();
  append(ring, 7, 2, 3);
  append(other, 7, 2, 3);
  DOCTEST_CHECK(same(ring.view(), other.view()));
  other.state().reset(torch::tensor({false, true, false}));
  const Tensor run = other.view().place.run.view({4, 3});
  DOCTEST_CHECK(torch::equal(run.select(1, 1), torch::full({4}, -1, torch::kInt64)));
  DOCTEST_CHECK(torch::equal(run.select(1, 2), torch::full({4}, 2, torch::kInt64)));
}

DOCTEST_TEST_CASE("a ring that joins another holds the rows of both, with the newest step common") {
  for (const auto& [own, more] :
      std::vector<std::pair<std::int64_t, std::int64_t>>{{4, 9}, {9, 4}, {0, 3}, {3, 0}, {30, 2}}) {
    nn::EntryRing ring(12), other(12);
    if (own > 0) append(ring, 0, own, 2);
    if (more > 0) append(other, 100, more, 3);
    const auto a = ring.view(), b = other.view();
    ring.join(other, 2, 3);
    const auto held = std::max(ring.size(), other.size()), kept = std::min<std::int64_t>(own, 12);
    DOCTEST_CHECK(ring.size() == std::max(kept, more));
    const auto all = ring.view();
    const Tensor run = all.place.run.view({held, 5}), labels = all.labels.view({held, 5});
    for (std::int64_t row = 0; row < 5; ++row) {
      const auto there = row < 2 ? kept : more;
      DOCTEST_CHECK((run.select(1, row).slice(0, 0, held - there) == -1).all().item<bool>());
      DOCTEST_CHECK((run.select(1, row).slice(0, held - there) == row).all().item<bool>());
      if (there == 0) continue;
      const auto& from = row < 2 ? a : b;
      DOCTEST_CHECK(torch::equal(labels.select(1, row).slice(0, held - there),
          from.labels.view({there, -1}).select(1, row < 2 ? row : row - 2)));
    }
    append(ring, 200, 1, 5);  // goes on
    DOCTEST_CHECK(ring.view(0, 1).labels[4].item<std::int64_t>() == 1004);
  }
}
