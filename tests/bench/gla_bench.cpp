// gla/KIND-step-T: a training step (forward, loss, backward) with the delta rule or with RetNet's
// decays, compared with gated linear attention of the same shape, in wall-clock and CPU seconds.
// Runs alternate. The peer's name has the spread of the ratios. gla/delta-scan: the delta rule in
// chunks compared with gla's recurrence.
//
// usage: bench_gla [TURNS]; prints JSON lines

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "measured.h"
#include "nn/arch/model.h"
#include "nn/base/runtime.h"
#include "nn/memory/joint_loss.h"
#include "nn/ops/gla_scan.h"

namespace {

using torch::Tensor;
using Run = std::function<void()>;

constexpr std::int64_t kTokens = 4096, kWidth = 256, kHeads = 4, kVocabulary = 4096;

nn::Batch batch_of(std::int64_t steps) {
  const auto rows = kTokens / steps;
  nn::Batch batch;
  batch.inputs = torch::randint(kVocabulary, {rows, steps}, torch::kInt64);
  batch.targets = torch::randint(kVocabulary, {rows, steps}, torch::kInt64);
  batch.weight = torch::ones({rows, steps});
  const auto at = torch::arange(kTokens).view({rows, steps});
  batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
  batch.fresh = torch::ones({rows}, torch::kBool);
  return batch;
}

Run step_of(const nn::GlaOptions& kind, const nn::Batch& batch) {
  nn::ModelOptions options;
  options.arch = "gla";
  options.gla = kind;
  options.shape.layers = 4;
  options.shape.d_model = kWidth;
  options.shape.heads = kHeads;
  options.shape.dropout = 0;
  const auto model = std::make_shared<nn::Model>(options, kVocabulary);
  model->train();
  return [=] {
    for (auto& weight : model->parameters()) weight.mutable_grad().reset();
    const auto hidden = model->architecture->forward(batch, nullptr);
    nn::joint_loss(hidden.output, hidden.key, batch, *model->head, {}, {}).backward();
  };
}

struct Seconds {
  double clock, cpu;
};

Seconds seconds(const Run& run) {
  const auto begin = std::clock();
  const double clock = bench::seconds_of(run);
  return {clock, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC};
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

void print(
    const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  char peer[100];
  std::snprintf(
      peer, sizeof peer, "gla (ratios %.3f to %.3f in %zu turns)", *least, *most, ratios.size());
  bench::print(name, median(ours), "s", peer, median(theirs), median(ratios));
}

void race(const std::string& name, const Run& ours, const Run& theirs, int turns) {
  ours(), theirs();
  std::vector<double> clock[2], cpu[2];
  for (int turn = 0; turn < turns; ++turn)
    for (const int who : {0, 1}) {
      const auto took = seconds(who == 0 ? ours : theirs);
      clock[who].push_back(took.clock), cpu[who].push_back(took.cpu);
    }
  print(name, clock[0], clock[1]);
  print(name + " cpu", cpu[0], cpu[1]);
}

void bench_scans(std::int64_t steps, int turns) {
  const auto rows = kTokens / steps, d_key = kWidth / 2 / kHeads, d_value = kWidth / kHeads;
  const auto leaf = [](torch::IntArrayRef sizes) { return torch::randn(sizes).requires_grad_(); };
  const std::vector<std::int64_t> keys = {rows, steps, kHeads, d_key};
  const Tensor q = leaf(keys), k = leaf(keys), v = leaf({rows, steps, kHeads, d_value}),
               beta = torch::rand({rows, steps, kHeads}).requires_grad_(),
               one = (-0.1 * torch::rand({rows, steps, kHeads})).requires_grad_(),
               each = (-0.1 * torch::rand(keys)).requires_grad_(),
               start = torch::zeros({rows, kHeads, d_key, d_value}),
               d_o = torch::randn({rows, steps, kHeads, d_value});
  const auto unit = (k / k.norm(2, {-1}, /*keepdim=*/true)).detach().requires_grad_();
  race(
      "gla/delta-scan-" + std::to_string(steps),
      [&] {
        nn::delta_scan({q, unit, v, beta, one, start}).o.backward(d_o);
      },
      [&] {
        nn::gla_scan({q, k, each, v, start}).o.backward(d_o);
      },
      turns);
}

}  // namespace

int main(int argc, char** argv) {
  nn::start(2, 1);
  torch::manual_seed(1);
  const int turns = argc > 1 ? std::max(1, std::atoi(argv[1])) : 7;
  for (const std::int64_t steps : {512, 2048}) {
    const auto batch = batch_of(steps);
    const auto gla = step_of({}, batch);
    for (const auto& [name, kind] : std::vector<std::pair<std::string, nn::GlaOptions>>{
             {"delta", {"delta", "gated", 4}}, {"retnet", {"sum", "fixed", 4}}})
      race("gla/" + name + "-step-" + std::to_string(steps), step_of(kind, batch), gla, turns);
    bench_scans(steps, turns);
  }
}
