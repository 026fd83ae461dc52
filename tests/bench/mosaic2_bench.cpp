// mosaic2/step-T and mosaic2/read-T: tokens per second of Memory Mosaics v2 in training and in
// reading without gradient. It is compared with a transformer of equal parameters (rotary
// positions, RMSNorm, gated feed-forward networks, no biases) and with a mosaic. mosaic2/next-T:
// tokens per second of decoding after T tokens. Runs alternate; the best of five counts, by the
// clock and by the time of all threads (cpu). The first line of a name also has the slowest run.
//
// usage: bench_mosaic2 [step] [read] [next]; prints JSON lines

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "measured.h"
#include "nn/arch/model.h"
#include "nn/base/runtime.h"
#include "nn/memory/joint_loss.h"

namespace {

constexpr std::int64_t kVocabulary = 8192, kTokens = 4096;
constexpr int kTurns = 5;

nn::Batch batch_of(std::int64_t rows, std::int64_t steps, bool fresh) {
  nn::Batch batch;
  batch.inputs = torch::randint(kVocabulary, {rows, steps}, torch::kInt64);
  batch.targets = torch::randint(kVocabulary, {rows, steps}, torch::kInt64);
  batch.weight = torch::ones({rows, steps});
  const auto at = torch::arange(rows * steps).view({rows, steps});
  batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
  batch.fresh = torch::full({rows}, fresh, torch::kBool);
  return batch;
}

/// Returns mosaic2, its twin and the mosaic, with equal widths and numbers of parameters that
/// differ by at most a thousandth.
std::vector<std::shared_ptr<nn::Model>> models() {
  nn::ModelOptions mosaic2;
  mosaic2.arch = "mosaic2";
  mosaic2.shape.layers = 2;
  mosaic2.shape.d_model = 768;
  mosaic2.shape.heads = 12;
  mosaic2.shape.d_ff = 2304;  // three times the width, as in the paper's smaller model
  mosaic2.shape.dropout = 0;
  auto twin = mosaic2, mosaic = mosaic2;
  twin.arch = "transformer";
  twin.shape.d_ff += 2 * 768 / 3;
  twin.transformer.positions = "rope";
  twin.transformer.norm_kind = "rms";
  twin.transformer.feed_forward = "gated";
  twin.transformer.activation = "silu";
  twin.transformer.bias = false;
  mosaic.arch = "mosaic";
  mosaic.mosaic.persistent_slots = 5 * 768;  // 15 d^2 parameters per layer, as in the others
  std::vector<std::shared_ptr<nn::Model>> made;
  for (const auto* const options : {&mosaic2, &twin, &mosaic})
    made.push_back(std::make_shared<nn::Model>(*options, kVocabulary));
  return made;
}

/// Seconds of one run: by the clock, and of all threads together.
struct Turn {
  double clock, cpu;
};

Turn turn_of(const std::function<void()>& run) {
  const auto cpu = std::clock();
  const auto clock = bench::seconds_of(run);
  return {clock, static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC};
}

/// Prints the speed of the first model relative to each other one.
void print_speeds(const std::string& name, std::int64_t tokens,
    const std::vector<std::vector<Turn>>& turns, double Turn::*kind) {
  const auto speeds = [&](std::size_t i) {
    std::vector<double> all;
    for (const auto& turn : turns[i]) all.push_back(static_cast<double>(tokens) / (turn.*kind));
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto own = speeds(0);
  bench::print(
      name, own.back(), "tokens/s", "its slowest turn", own.front(), own.back() / own.front());
  for (std::size_t i = 1; i < turns.size(); ++i) {
    const auto other = speeds(i).back();
    bench::print(name, own.back(), "tokens/s",
        i == 1 ? "transformer, rope, gated, fused" : "mosaic", other, own.back() / other);
  }
}

void race(
    const std::string& name, std::int64_t tokens, const std::vector<std::function<void()>>& runs) {
  std::vector<std::vector<Turn>> turns(runs.size());
  for (int turn = 0; turn < kTurns; ++turn)
    for (std::size_t i = 0; i < runs.size(); ++i) turns[i].push_back(turn_of(runs[i]));
  print_speeds(name, tokens, turns, &Turn::clock);
  print_speeds(name + " cpu", tokens, turns, &Turn::cpu);
}

void bench_steps(const std::vector<std::shared_ptr<nn::Model>>& all, std::int64_t steps) {
  const auto batch = batch_of(kTokens / steps, steps, true);
  std::vector<std::function<void()>> runs;
  for (const auto& model : all) {
    model->train();
    runs.emplace_back([&batch, model] {
      for (auto& weight : model->parameters()) weight.mutable_grad().reset();
      const auto hidden = model->architecture->forward(batch, nullptr);
      nn::joint_loss(hidden.output, hidden.key, batch, *model->head, {}, {}).backward();
    });
  }
  race("mosaic2/step-" + std::to_string(steps), kTokens, runs);
}

void bench_reading(const std::vector<std::shared_ptr<nn::Model>>& all, std::int64_t steps) {
  const torch::NoGradGuard no_grad;
  const auto batch = batch_of(kTokens / steps, steps, true);
  std::vector<std::function<void()>> runs;
  for (const auto& model : all) {
    model->eval();
    runs.emplace_back([&batch, model] { model->architecture->forward(batch, nullptr); });
  }
  race("mosaic2/read-" + std::to_string(steps), kTokens, runs);
}

void bench_next(const std::vector<std::shared_ptr<nn::Model>>& all, std::int64_t steps) {
  constexpr std::int64_t kNext = 32;
  const torch::NoGradGuard no_grad;
  const auto before = batch_of(1, steps, true), one = batch_of(1, 1, false);
  std::vector<nn::State> states(all.size());
  std::vector<std::function<void()>> runs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->eval();
    all[i]->architecture->forward(before, &states[i]);
    runs.emplace_back([&, i] {
      for (std::int64_t t = 0; t < kNext; ++t) all[i]->architecture->forward(one, &states[i]);
    });
  }
  race("mosaic2/next-" + std::to_string(steps), kNext, runs);
}

}  // namespace

int main(int argc, char** argv) {
  nn::start(2, 1);
  std::vector<std::string> parts(argv + 1, argv + argc);
  if (parts.empty()) parts = {"step", "read", "next"};
  const auto all = models();
  for (const auto& part : parts) {
    for (const std::int64_t steps : {512, 2048}) {
      if (part == "step") bench_steps(all, steps);
      if (part == "read") bench_reading(all, steps);
      if (part == "next") bench_next(all, steps);
    }
  }
}
