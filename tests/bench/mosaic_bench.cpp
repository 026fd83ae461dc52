// mosaic/unit-T and mosaic/step-T: a contextual memory unit compared with the attention layer of
// its width (q, k, v, o; no biases), forward and backward. A training step of a mosaic is compared
// with its GPT-2 twin of equal parameters, on the twin's fused blocks and on its plain modules,
// without dropout and with 0.05 on attention weights.
//
// attention/operation-T: tiled attention compared with torch's, forward and backward, and forward.
//
// dropout/WHAT-T: the cost of dropout on attention weights, forward and backward. Both memory
// units, the attention layer, a block of the GPT-2 twin and relative attention are compared with
// themselves without dropout. The operation alone is compared with torch's without and with
// dropout.
//
// Runs alternate. The output has CPU seconds, the ratio of medians, the lowest and highest ratio of
// a round, and the ratio of medians by the clock.
//
// usage: bench_mosaic [unit] [step] [attention] [dropout]; prints JSON lines

#include <chrono>
#include <cstdio>
#include <ctime>

#include "nn/arch/model.h"
#include "nn/arch/mosaic_units.h"
#include "nn/base/runtime.h"
#include "nn/layers/block.h"
#include "nn/memory/joint_loss.h"
#include "nn/ops/tiled_attend.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kWidth = 768, kHeads = 12, kVocabulary = 8192;

nn::Batch batch_of(std::int64_t rows, std::int64_t steps) {
  nn::Batch batch;
  batch.inputs = torch::randint(kVocabulary, {rows, steps}, torch::kInt64);
  batch.targets = torch::randint(kVocabulary, {rows, steps}, torch::kInt64);
  batch.weight = torch::ones({rows, steps});
  const auto at = torch::arange(rows * steps).view({rows, steps});
  batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
  batch.fresh = torch::ones({rows}, torch::kBool);
  return batch;
}

nn::ShapeOptions shape(std::int64_t layers, double dropout) {
  nn::ShapeOptions s;
  s.layers = layers;
  s.d_model = kWidth;
  s.heads = kHeads;
  s.dropout = 0;
  s.attention_dropout = dropout;
  return s;
}

double seconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Seconds of rounds in order, for one or for two alternating functions.
struct Rounds {
  std::vector<double> seconds;
  void add(double s) { seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), s), s); }
  double middle() const { return seconds[seconds.size() / 2]; }
};

/// Runs both `rounds` times alternately and prints the medians.
void compare(const std::string& name, const std::function<void()>& run, const std::string& peer,
    const std::function<void()>& other, std::size_t rounds) {
  run(), other();
  Rounds ours, theirs, ratios, clock, their_clock;
  const auto measure = [](const std::function<void()>& f, Rounds& processor, Rounds& by_clock) {
    const auto begin = std::clock();
    by_clock.add(seconds(f));
    const auto spent = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    processor.add(spent);
    return spent;
  };
  for (std::size_t i = 0; i < rounds; ++i) {
    const double own = measure(run, ours, clock);
    ratios.add(measure(other, theirs, their_clock) / own);
  }
  std::printf(
      "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"s\",\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g,\"lowest\":%.4g,\"highest\":%.4g,\"clock_ratio\":%.4g,\"rounds\":%zu}\n",
      name.c_str(), ours.middle(), peer.c_str(), theirs.middle(), theirs.middle() / ours.middle(),
      ratios.seconds.front(), ratios.seconds.back(), their_clock.middle() / clock.middle(), rounds);
  std::fflush(stdout);
}

void initialise(torch::nn::Module& module) {
  nn::initialise(module, "fan-in", 1);
  if (auto* const own = dynamic_cast<nn::OwnFirstValues*>(&module)) own->first_values();
  module.train();
}

/// Forward and backward, with the gradient of the sum.
std::function<void()> attention_pass(
    std::shared_ptr<nn::Attention> layer, Tensor x, const nn::Batch& batch) {
  initialise(*layer);
  return [=] {
    nn::KvCache cache(batch, nullptr);
    nn::Visibility visibility;
    visibility.causal = true;
    layer->forward(x, visibility, cache, "a").sum().backward();
  };
}

std::function<void()> unit_pass(
    std::shared_ptr<nn::ContextualUnit> unit, Tensor x, const nn::Batch& batch) {
  {
    const torch::NoGradGuard no_grad;
    initialise(*unit);
  }
  return [=] {
    nn::Batch pairs = batch;
    for (Tensor* const t : {&pairs.place.run, &pairs.place.segment, &pairs.place.position})
      *t = t->narrow(1, 1, x.size(1) - 1);
    pairs.inputs = pairs.inputs.narrow(1, 1, x.size(1) - 1);
    nn::KvCache cache(pairs, nullptr);
    nn::MosaicCall call;
    call.cache = &cache;
    call.causal = true;
    unit->forward(x, call, "c").sum().backward();
  };
}

void bench_units(std::size_t rounds) {
  for (const std::int64_t steps : {512, 2048}) {
    const auto batch = batch_of(4096 / steps, steps);
    const auto x = torch::randn({4096 / steps, steps, kWidth}).requires_grad_();
    const auto none = shape(1, 0);
    nn::TransformerOptions unbiased;
    unbiased.bias = false;
    compare("mosaic/unit-" + std::to_string(steps),
        unit_pass(std::make_shared<nn::ContextualUnit>(none), x, batch),
        "attention layer, d 768, 12 heads",
        attention_pass(std::make_shared<nn::Attention>(none, unbiased), x, batch), rounds);
  }
}

/// A whole step: forward, loss, backward (the optimiser's part is the same for both).
std::function<void()> step(std::shared_ptr<nn::Model> model, const nn::Batch& batch) {
  model->train();
  return [=] {
    for (auto& weight : model->parameters()) weight.mutable_grad().reset();
    const auto hidden = model->architecture->forward(batch, nullptr);
    nn::joint_loss(hidden.output, hidden.key, batch, *model->head, {}, {}).backward();
  };
}

void bench_steps(std::size_t rounds) {
  for (const double dropout : {0.0, 0.05}) {
    nn::ModelOptions mosaic;
    mosaic.arch = "mosaic";
    mosaic.shape = shape(2, dropout);
    nn::ModelOptions twin = mosaic;
    twin.arch = "transformer";
    twin.transformer.bias = false;
    twin.transformer.context = 2048;
    nn::ModelOptions plain = twin;
    plain.transformer.activation = "gelu-exact";  // the fused block does not support it
    for (const std::int64_t steps : {512, 2048}) {
      const auto batch = batch_of(4096 / steps, steps);
      const auto of = [&](const nn::ModelOptions& options) {
        return step(std::make_shared<nn::Model>(options, kVocabulary), batch);
      };
      const auto name =
          "mosaic/step-" + std::to_string(steps) + (dropout > 0 ? ", dropout .05" : "");
      compare(name, of(mosaic), "GPT-2 twin, fused blocks", of(twin), rounds);
      compare(name, of(mosaic), "GPT-2 twin, modules", of(plain), rounds);
    }
  }
}

/// One attention over (B, 12, T, 64), forward and optionally backward.
std::function<void()> operation(
    std::int64_t steps, bool ours, double dropout, bool backward = true) {
  std::vector<Tensor> in;
  for (int i = 0; i < 3; ++i)
    in.push_back(torch::randn({4096 / steps, steps, kHeads, 64}).transpose(1, 2).requires_grad_());
  return [=] {
    const auto out =
        ours ? nn::tiled_attend(in[0], in[1], in[2], {}, {0.125, true, dropout, nn::draw_seed()})
             : torch::scaled_dot_product_attention(in[0], in[1], in[2], {}, dropout, true);
    if (backward) torch::autograd::grad({out.sum()}, in);
  };
}

void bench_attention(std::size_t rounds) {
  for (const std::int64_t steps : {64, 512, 2048}) {
    const auto name = "attention/operation-" + std::to_string(steps);
    compare(name, operation(steps, true, 0), "torch's", operation(steps, false, 0), rounds);
    compare(name + ", forward", operation(steps, true, 0, false), "torch's",
        operation(steps, false, 0, false), rounds);
  }
}

/// Attention with relative positions.
std::function<void()> relative(std::int64_t steps, double dropout) {
  const auto rows = 4096 / steps;
  std::vector<Tensor> in{torch::randn({rows, steps, kHeads, 64}),
      torch::randn({rows, steps, kHeads, 64}), torch::randn({rows, steps, 2, kHeads, 64}),
      torch::randn({steps, kHeads, 64})};
  for (auto& x : in) x.requires_grad_();
  return [=] {
    const auto out = nn::relative_attend(in[0], in[1], in[2], in[3], nn::KeyVisibility(), dropout);
    torch::autograd::grad({out.sum()}, in);
  };
}

std::function<void()> persistent_pass(const nn::ShapeOptions& of, Tensor x) {
  const auto unit = std::make_shared<nn::PersistentUnit>(of, 2048);
  {
    const torch::NoGradGuard no_grad;
    initialise(*unit);
  }
  return [=] { unit->forward(x, nn::MosaicCall(), "p").sum().backward(); };
}

std::function<void()> block_pass(const nn::ShapeOptions& of, Tensor x, const nn::Batch& batch) {
  const auto block = std::make_shared<nn::Block>(of, nn::TransformerOptions(), false);
  {
    const torch::NoGradGuard no_grad;
    initialise(*block);
  }
  return [=] {
    nn::KvCache cache(batch, nullptr);
    nn::Visibility visibility;
    visibility.causal = true;
    block->forward(x, visibility, cache, "h", {}, nullptr).sum().backward();
  };
}

void bench_dropout(std::size_t rounds) {
  const auto none = shape(1, 0), dropping = shape(1, .05);
  const nn::TransformerOptions gpt2;
  for (const std::int64_t steps : {512, 2048}) {
    const auto at = "-" + std::to_string(steps);
    const auto batch = batch_of(4096 / steps, steps);
    const auto x = torch::randn({4096 / steps, steps, kWidth}).requires_grad_();
    const auto unit = [&](const nn::ShapeOptions& of) {
      return unit_pass(std::make_shared<nn::ContextualUnit>(of), x, batch);
    };
    const auto layer = [&](const nn::ShapeOptions& of) {
      return attention_pass(std::make_shared<nn::Attention>(of, gpt2), x, batch);
    };
    compare("dropout/unit" + at, unit(dropping), "without", unit(none), rounds);
    compare("dropout/persistent" + at, persistent_pass(dropping, x), "without",
        persistent_pass(none, x), rounds);
    compare("dropout/attention" + at, layer(dropping), "without", layer(none), rounds);
    compare("dropout/block" + at, block_pass(dropping, x, batch), "without",
        block_pass(none, x, batch), rounds);
    compare("dropout/relative" + at, relative(steps, .05), "without", relative(steps, 0), rounds);
    compare("dropout/operation" + at, operation(steps, true, .05), "torch's without dropout",
        operation(steps, false, 0), rounds);
    compare("dropout/operation" + at, operation(steps, true, .05), "torch's with dropout",
        operation(steps, false, .05), rounds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  nn::start(2, 1);
  std::vector<std::string> parts(argv + 1, argv + argc);
  if (parts.empty()) parts = {"unit", "step", "attention", "dropout"};
  for (const auto& part : parts) {
    if (part == "unit") bench_units(7);
    if (part == "step") bench_steps(7);
    if (part == "attention") bench_attention(7);
    if (part == "dropout") bench_dropout(7);
  }
}
