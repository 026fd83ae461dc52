// Mean attention of last tokens, compared with whole windows one at a time.

#include <doctest/doctest.h>

#include "infer/score/attended.h"
#include "infer/windows/windows.h"
#include "nn/layers/attention.h"
#include "tiny.h"

namespace {

using torch::Tensor;

/// Returns (layers, heads, window) for the sequence whose first target is element `target`.
Tensor alone(
    nn::Model& model, const shard::Dataset& data, std::uint64_t target, std::int64_t window) {
  const torch::NoGradGuard no_gradient;
  std::vector<Tensor> layers;
  auto& watched = dynamic_cast<nn::WatchedAttention&>(*model.architecture);
  watched.watch([&](const Tensor& weights) {
    layers.push_back(torch::constant_pad_nd(weights[0], {0, window - weights.size(2)}));
  });
  const std::vector<infer::Span> spans = {{target, window, 0, 0, 0, true}};
  model.architecture->forward(infer::batch_of(spans, data, {}, model.vocabulary), nullptr);
  watched.watch({});
  return torch::stack(layers);
}

}  // namespace

DOCTEST_TEST_CASE("mean attention is that of whole windows, on average") {
  constexpr std::int64_t kWindow = 150;  // longer than a piece
  const tiny::Shard text(tiny::text_of({100, kWindow + 2 - 100}));
  for (const auto& [arch, positions] :
      {std::pair{"transformer", "rope"}, {"transformer", "alibi"}, {"mosaic", "learned"}}) {
    DOCTEST_CAPTURE(arch);
    DOCTEST_CAPTURE(positions);
    auto model = tiny::model_of(arch, positions, 23, torch::kFloat64);
    infer::AttendedOptions options;
    options.window = kWindow, options.sequences = 10, options.batch_tokens = 3 * kWindow;
    const auto mean = infer::mean_attention(model, text.data(), options, torch::kCPU);
    const auto first = alone(model, text.data(), 1, kWindow);
    const auto second = alone(model, text.data(), 2, kWindow);
    // n of ten sequences begin at the first token, the others at the second.
    const auto apart = first - second;
    const auto share = ((mean - second) * apart).sum() / apart.square().sum();
    const double n = 10 * share.item<double>();
    DOCTEST_CHECK(n == doctest::Approx(std::round(n)).epsilon(1e-9));
    DOCTEST_CHECK((n > 0.5 && n < 9.5));
    DOCTEST_CHECK(tiny::largest_difference(mean, share * first + (1 - share) * second) < 1e-10);
    DOCTEST_CHECK(tiny::largest_difference(mean.sum(2), torch::ones({2, 2})) < 1e-10);
  }
}

DOCTEST_TEST_CASE("attention that cannot be watched, and windows that do not fit, are refused") {
  const tiny::Shard text(tiny::text_of({120}));
  infer::AttendedOptions options;
  options.window = 97;
  auto lstm = tiny::model_of("lstm");
  DOCTEST_CHECK_THROWS_AS(
      infer::mean_attention(lstm, text.data(), options, torch::kCPU), core::Error);
  auto learned = tiny::model_of("transformer");  // 96 positions
  DOCTEST_CHECK_THROWS_AS(
      infer::mean_attention(learned, text.data(), options, torch::kCPU), core::Error);
  auto mosaic = tiny::model_of("mosaic");
  options.window = 120;
  DOCTEST_CHECK_THROWS_AS(
      infer::mean_attention(mosaic, text.data(), options, torch::kCPU), core::Error);
}
