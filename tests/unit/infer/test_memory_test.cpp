// The ring, and the distribution over all words that sampling draws from.
#include <doctest/doctest.h>

#include <cmath>
#include <deque>

#include "core/rng.h"
#include "infer/test_memory.h"
#include "nn/torch.h"
#include "tiny.h"

namespace {

using torch::Tensor;

nn::Place places(std::int64_t begin, std::int64_t steps, std::int64_t rows) {
  const Tensor row = torch::arange(rows).repeat({steps});
  return {row, torch::zeros({steps * rows}, torch::kInt64),
          torch::arange(begin, begin + steps).repeat_interleave(rows)};
}

}  // namespace

DOCTEST_TEST_CASE("a ring holds the last steps, oldest first, in one piece") {
  core::Rng rng(4);
  for (const std::int64_t rows : {1, 3}) {
    for (const std::int64_t capacity : {1, 5, 16}) {
      infer::Ring ring(capacity, 2, torch::kFloat32, rows);
      std::int64_t steps = 0;
      for (int call = 0; call < 60; ++call) {
        const auto n = static_cast<std::int64_t>(rng.below(9));
        const Tensor keys = torch::arange(steps * rows, (steps + n) * rows)
                                .to(torch::kFloat32)
                                .unsqueeze(1)
                                .expand({n * rows, 2});
        ring.append(keys, torch::arange(steps * rows, (steps + n) * rows), places(steps, n, rows));
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
      }
    }
  }
}

DOCTEST_TEST_CASE("selecting rows of a ring takes their past along") {
  infer::Ring ring(4, 1, torch::kFloat32, 3);
  const Tensor labels = torch::arange(15);
  ring.append(labels.to(torch::kFloat32).unsqueeze(1), labels, places(0, 5, 3));
  ring.select(torch::tensor({2, 2, 0}, torch::kInt64));
  const nn::Entries view = ring.view();
  DOCTEST_CHECK(torch::equal(
      view.labels, torch::tensor({5, 5, 3, 8, 8, 6, 11, 11, 9, 14, 14, 12}, torch::kInt64)));
  DOCTEST_CHECK(torch::equal(view.place.run, torch::arange(3).repeat({4})));
  infer::Ring copy = ring.clone();
  ring.clear();
  DOCTEST_CHECK(ring.view().size() == 0);
  DOCTEST_CHECK(copy.view().size() == 12);
}

DOCTEST_TEST_CASE("the distribution over words sums to one and has eval's scores in it") {
  const torch::NoGradGuard no_gradient;
  nn::Model model = tiny::model_of("lstm", "learned", 23, torch::kFloat64);
  const tiny::Text text = tiny::text_of({40});
  const tiny::Shard shard(text);
  const auto tokens = text.tokens();
  for (const char* combine : {"joint", "interpolate"}) {
    for (const char* names : {"none", "local", "local,long"}) {
      for (const std::int64_t cache : {0, 6}) {
        infer::MemoryOptions memory = tiny::memory_of(names);
        memory.cache = cache, memory.combine = memory.memory == "none" ? "joint" : combine;
        auto windows = tiny::windows_of(10, 10, "on");
        const Tensor expected = tiny::log_probs(model, shard.data(), windows, memory);
        infer::resolve(windows, memory, model);
        // Two rows that read the same text, remembered side by side.
        infer::TestMemory remembered(memory, windows.window, true, model, torch::kCPU, 2);
        nn::State state;
        for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(tokens.size()); ++i) {
          nn::Batch batch;
          batch.inputs =
              torch::full({2, 1}, static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i)]),
                          torch::kInt64);
          batch.targets = batch.inputs;
          batch.weight = torch::ones({2, 1});
          batch.place = {torch::arange(2).unsqueeze(1), torch::zeros({2, 1}, torch::kInt64),
                         torch::full({2, 1}, i, torch::kInt64)};
          batch.fresh = torch::full({2}, i == 0, torch::kBool);
          const nn::Hidden hidden = model.architecture->forward(batch, &state);
          const Tensor f = hidden.f.flatten(0, 1), g = hidden.g.flatten(0, 1);
          const nn::Place place = batch.place.flatten();
          const Tensor words = remembered.log_probs(*model.head, f, g, place);
          DOCTEST_CHECK(
              torch::allclose(words.logsumexp(1), torch::zeros({2}, torch::kFloat64), 0, 1e-9));
          const auto next = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i) + 1]);
          for (std::int64_t row = 0; row < 2; ++row)
            DOCTEST_CHECK(std::abs((words[row][next] - expected[i]).item<double>()) < 1e-9);
          remembered.append(f, g, torch::full({2}, next, torch::kInt64), place);
          remembered.select(torch::tensor({1, 0}, torch::kInt64));
        }
      }
    }
  }
}
