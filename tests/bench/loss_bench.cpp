// loss/memory and loss/time: the blocked loss with a plain and an adaptive softmax, compared with
// the loss with whole matrices and with torch's linear + cross_entropy and
// AdaptiveLogSoftmaxWithLoss. Targets follow Zipf's law. Each variant runs in its own process,
// which gives its own peak memory.
//
// usage: bench_loss [TOKENS]; prints JSON lines

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/adaptive.h>

#include <cstdlib>

#include "measured.h"
#include "nn/base/runtime.h"
#include "nn/heads/softmax_heads.h"
#include "nn/memory/joint_loss.h"

namespace {

using bench::Measured;
using torch::Tensor;

struct Shape {
  std::int64_t tokens, segment, vocabulary, width,
      memories;                       // memories: entries visible to a token before its segment
  std::vector<std::int64_t> cutoffs;  // empty: plain softmax
};

struct Problem {
  nn::Batch batch;
  Tensor f, g;
  std::shared_ptr<nn::Head> head;
  nn::Bands bands;
  torch::nn::AdaptiveLogSoftmaxWithLoss theirs{nullptr};
  nn::MemoryRule rule;
  nn::Entries carried;
};

std::shared_ptr<nn::Head> head_of(const nn::Bands& bands) {
  if (bands.count() == 1) return std::make_shared<nn::PlainHead>(bands.vocabulary, bands.d_model);
  return std::make_shared<nn::AdaptiveHead>(bands, nullptr, false, 0.0);
}

Problem problem_of(const Shape& s) {
  torch::manual_seed(1);
  Problem p;
  const std::int64_t rows = s.tokens / s.segment;
  const auto grid = torch::arange(s.tokens).view({rows, s.segment});
  p.batch.targets =
      (torch::rand({rows, s.segment}, torch::kFloat64) * std::log(double(s.vocabulary) + 1))
          .exp()
          .floor()
          .to(torch::kInt64)
          .sub_(1)
          .clamp_(0, s.vocabulary - 1);
  p.batch.inputs = p.batch.targets;
  p.batch.weight = torch::ones({rows, s.segment});
  p.batch.place = {torch::zeros_like(grid), grid.div(s.segment, "floor"), grid};
  p.f = torch::randn({rows, s.segment, s.width}).requires_grad_();
  p.g = torch::randn({rows, s.segment, s.width}).requires_grad_();
  p.bands = {s.vocabulary, s.width, s.cutoffs, 4};
  p.head = head_of(p.bands);
  if (!s.cutoffs.empty())
    p.theirs = torch::nn::AdaptiveLogSoftmaxWithLoss(
        torch::nn::AdaptiveLogSoftmaxWithLossOptions(s.width, s.vocabulary, s.cutoffs));
  torch::NoGradGuard guard;
  for (Tensor& weight : p.head->weights()) weight.normal_(0, 0.02);
  if (s.memories > 0) {
    p.rule = nn::MemoryRule::parse("long");
    p.rule.reach = s.memories;
    const auto before = torch::arange(-s.memories, 0);
    p.carried = {torch::randn({s.memories, s.width}),
        torch::randint(s.vocabulary, {s.memories}, torch::kInt64),
        {torch::zeros_like(before), before, before}};
  }
  return p;
}

void blocked(Problem& p) {
  const auto entries = nn::Entries::concatenate({nn::Entries::of(p.g, p.batch), p.carried});
  nn::joint_loss(p.f, p.g, p.batch, *p.head, p.rule, entries).backward();
}

// Returns the scores of the targets and the log-sum-exps of the first level, computed with whole
// matrices.
std::pair<Tensor, Tensor> scores_whole(Problem& p, const Tensor& f, const Tensor& targets) {
  const auto weights = p.head->weights();
  const auto bands = static_cast<std::size_t>(p.bands.count());
  if (bands == 1) {
    const Tensor logits = f.mm(weights[0].t());
    return {logits.gather(1, targets.unsqueeze(1)).squeeze(1), logits.logsumexp(1)};
  }
  const Tensor first = torch::cat({f.mm(weights[0].t()), f.mm(weights[bands].t())}, 1);
  Tensor choice = targets;
  std::vector<Tensor> rows(bands), tails(bands);
  for (std::size_t i = 1; i < bands; ++i) {
    const auto band = static_cast<std::int64_t>(i);
    const Tensor inside = (targets >= p.bands.begin(band)) & (targets < p.bands.end(band));
    choice = choice.masked_fill(inside, p.bands.end(0) + band - 1);
    rows[i] = inside.nonzero().flatten();
    const Tensor scores = f.index_select(0, rows[i]).mm(weights[bands + i]).mm(weights[i].t());
    const Tensor labels = targets.index_select(0, rows[i]) - p.bands.begin(band);
    tails[i] = scores.log_softmax(1).gather(1, labels.unsqueeze(1)).squeeze(1);
  }
  Tensor hit = first.gather(1, choice.unsqueeze(1)).squeeze(1);
  for (std::size_t i = 1; i < bands; ++i) hit = hit.index_add(0, rows[i], tails[i]);
  return {hit, first.logsumexp(1)};
}

void whole(Problem& p) {
  const Tensor f = p.f.flatten(0, 1), g = p.g.flatten(0, 1), targets = p.batch.targets.flatten();
  const auto [hit, z] = scores_whole(p, f, targets);
  if (!p.rule.any()) {
    (z - hit).sum().backward();
    return;
  }
  const Tensor keys = torch::cat({g, p.carried.keys}),
               labels = torch::cat({targets, p.carried.labels});
  const nn::TokenPositions place = p.batch.place.flatten(),
                           places = nn::TokenPositions::concatenate({place, p.carried.place});
  const Tensor scores =
      (g.mm(keys.t()) / std::sqrt(double(g.size(1))))
          .masked_fill(nn::visibility(place, places, p.rule).logical_not_(), nn::kUnseen);
  const Tensor match = labels.unsqueeze(0) == targets.unsqueeze(1);
  const Tensor right = scores.masked_fill(match.logical_not(), nn::kUnseen).logsumexp(1);
  (torch::logaddexp(z, scores.logsumexp(1)) - torch::logaddexp(hit, right)).sum().backward();
}

void torch_loss(Problem& p) {
  if (p.theirs) {
    p.theirs->forward(p.f.flatten(0, 1), p.batch.targets.flatten()).output.neg().sum().backward();
    return;
  }
  const Tensor logits = torch::linear(p.f.flatten(0, 1), p.head->weights()[0]);
  torch::nn::functional::cross_entropy(logits, p.batch.targets.flatten(),
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
      .backward();
}

// Returns the best of three in a child process. Memory excludes the problem itself.
Measured measure(const Shape& shape, const std::function<void(Problem&)>& run) {
  return bench::in_child([&] {
    nn::start(2, 1);
    return [&run, p = problem_of(shape)]() mutable {
      double best = 1e9;
      for (int i = 0; i < 3; ++i) best = std::min(best, bench::seconds_of([&] { run(p); }));
      return best;
    };
  });
}

void print(
    const char* name, double value, const char* unit, const std::string& peer, double other) {
  bench::print(name, value, unit, peer, other, other / value);
}

// Compares the blocked loss with the materialised loss and, without memories, with torch's.
void compare(const Shape& shape) {
  const Measured ours = measure(shape, blocked), materialised = measure(shape, whole);
  const bool adaptive = !shape.cutoffs.empty();
  const std::string at = std::string(adaptive ? " adaptive" : "") + " d" +
                         std::to_string(shape.width) + " V" + std::to_string(shape.vocabulary) +
                         " M" + std::to_string(shape.memories);
  print("loss/time", ours.seconds, "s", "materialised" + at, materialised.seconds);
  print("loss/memory", ours.bytes, "bytes", "materialised" + at, materialised.bytes);
  if (shape.memories > 0) return;
  const Measured theirs = measure(shape, torch_loss);
  const std::string name =
      (adaptive ? "torch AdaptiveLogSoftmaxWithLoss" : "torch linear + cross_entropy") + at;
  print("loss/time", ours.seconds, "s", name, theirs.seconds);
  print("loss/memory", ours.bytes, "bytes", name, theirs.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t tokens = argc > 1 ? std::atoll(argv[1]) : 4096;
  for (const bool adaptive : {false, true}) {
    for (const std::int64_t width : {256, 1024}) {
      for (const std::int64_t vocabulary : {8000, 33278, 50257}) {
        for (const std::int64_t memories : {0, 512, 12288}) {
          if (width == 1024 && vocabulary != 33278) continue;
          std::vector<std::int64_t> cutoffs;
          if (adaptive) cutoffs = {vocabulary / 16, vocabulary / 4};
          compare({tokens, 512, vocabulary, width, memories, cutoffs});
        }
      }
    }
  }
}
