// srupp/recurrence: the share of a training step that the recurrence takes at d 768, compared with
// its bound of 15 %. srupp/scan: the fused recurrence compared with the loop in torch's operators.
//
// prints JSON lines

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "measured.h"
#include "nn/arch/model.h"
#include "nn/base/runtime.h"
#include "nn/ops/sru_scan.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kLayers = 4, kWidth = 768, kRows = 4, kSegment = 256, kVocabulary = 256;

template <class F> double seconds(int times, F f) {
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

double step_seconds() {
  nn::ModelOptions options;
  options.arch = "srupp";
  options.shape.layers = kLayers;
  options.shape.d_model = kWidth;
  options.shape.heads = 1;
  options.shape.dropout = 0.1;
  options.layer_memory.layer_memory = std::to_string(kSegment);
  nn::Model model(options, kVocabulary);
  model.train();
  nn::State state;
  nn::Batch batch;
  batch.inputs = batch.targets = torch::randint(kVocabulary, {kRows, kSegment}, torch::kInt64);
  const auto zeros = torch::zeros_like(batch.inputs);
  batch.place = {zeros, zeros, zeros};
  return seconds(5, [&] {
    model.zero_grad();
    const auto hidden = model.architecture->forward(batch, &state);
    hidden.output.sum().backward();
    state.detach();
  });
}

template <class Scan> double scan_seconds(Scan scan, int times) {
  const auto leaf = [](torch::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(); };
  const Tensor gates = leaf({kRows, kSegment, 3 * kWidth}), x = leaf({kRows, kSegment, kWidth}),
               start = leaf({kRows, kWidth}), dropout = torch::ones({kRows, kWidth});
  const nn::SruWeights weights{leaf({kWidth}), leaf({kWidth}), leaf({kWidth}), leaf({kWidth})};
  const Tensor d_h = torch::randn({kRows, kSegment, kWidth});
  return seconds(times, [&] {
    for (const auto& t : {gates, x, start}) t.mutable_grad() = Tensor();
    scan(gates, x, start, weights, dropout, Tensor()).h.backward(d_h);
  });
}

}  // namespace

int main() {
  nn::start(2, 1);
  torch::manual_seed(1);
  const double step = step_seconds(), fused = scan_seconds(nn::sru_scan, 5),
               loop = scan_seconds(nn::sru_scan_plain, 2);
  const double share = kLayers * fused / step, tokens = kRows * kSegment;
  bench::print("srupp/recurrence", share, "share of a step", "bound", 0.15, 0.15 / share);
  bench::print("srupp/scan", 1e6 * fused / tokens, "us/token", "loop in torch's operators",
      1e6 * loop / tokens, loop / fused);
}
