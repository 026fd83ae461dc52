// The distribution over all tokens from which sampling draws.
#include <doctest/doctest.h>

#include <cmath>

#include "infer/memory/stream_memory.h"
#include "nn/base/torch.h"
#include "tiny.h"

namespace {

using torch::Tensor;

}  // namespace

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
        tiny::cache(memory).positions = cache,
        tiny::context(memory).combine = tiny::context(memory).memory == "none" ? "joint" : combine;
        const auto windows = tiny::windows_of(10, 10, true);
        const Tensor expected = tiny::log_probs(model, shard.data(), windows, memory);
        // Two rows with one text, remembered in parallel.
        infer::StreamMemory remembered(
            infer::plan_memory(memory, windows, model), windows.window, true, model, 2);
        nn::State state;
        for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(tokens.size()); ++i) {
          nn::Batch batch;
          batch.inputs = torch::full({2, 1},
              static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i)]), torch::kInt64);
          batch.targets = batch.inputs;
          batch.weight = torch::ones({2, 1});
          batch.place = {torch::arange(2).unsqueeze(1), torch::zeros({2, 1}, torch::kInt64),
              torch::full({2, 1}, i, torch::kInt64)};
          batch.fresh = torch::full({2}, i == 0, torch::kBool);
          const nn::Hidden hidden = model.architecture->forward(batch, &state);
          const Tensor f = hidden.output.flatten(0, 1), g = hidden.key.flatten(0, 1);
          const nn::TokenPositions place = batch.place.flatten();
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
