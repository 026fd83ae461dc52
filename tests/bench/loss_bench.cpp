// loss/memory and loss/time: the blocked loss beside the same loss with whole matrices, and beside
// torch's linear + cross_entropy. Each variant runs in a process of its own, so that its peak
// memory is its own.
//
// usage: bench_loss [TOKENS]; prints JSON lines

#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/nn/functional/loss.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "nn/joint_loss.h"
#include "nn/plain_head.h"
#include "nn/runtime.h"

namespace {

using torch::Tensor;

struct Shape {
  std::int64_t tokens, segment, vocabulary, width,
      memories;  // memories: entries a token may see before its segment
};

struct Problem {
  nn::Batch batch;
  Tensor f, g;
  std::shared_ptr<nn::PlainHead> head;
  nn::MemoryRule rule;
  nn::Entries carried;
};

Problem problem_of(const Shape& s) {
  torch::manual_seed(1);
  Problem p;
  const std::int64_t rows = s.tokens / s.segment;
  const auto grid = torch::arange(s.tokens).view({rows, s.segment});
  p.batch.targets = torch::randint(s.vocabulary, {rows, s.segment}, torch::kInt64);
  p.batch.inputs = p.batch.targets;
  p.batch.weight = torch::ones({rows, s.segment});
  p.batch.place = {torch::zeros_like(grid), grid.div(s.segment, "floor"), grid};
  p.f = torch::randn({rows, s.segment, s.width}).requires_grad_();
  p.g = torch::randn({rows, s.segment, s.width}).requires_grad_();
  p.head = std::make_shared<nn::PlainHead>(s.vocabulary, s.width);
  torch::NoGradGuard guard;
  p.head->weights()[0].normal_(0, 0.02);
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
  nn::joint_loss(p.f, p.g, p.batch, *p.head, p.rule, p.carried).backward();
}

void whole(Problem& p) {
  const Tensor f = p.f.flatten(0, 1), g = p.g.flatten(0, 1), targets = p.batch.targets.flatten();
  const Tensor logits = f.mm(p.head->weights()[0].t());
  const Tensor hit = logits.gather(1, targets.unsqueeze(1)).squeeze(1), z = logits.logsumexp(1);
  if (!p.rule.any()) {
    (z - hit).sum().backward();
    return;
  }
  const Tensor keys = torch::cat({g, p.carried.keys}),
               labels = torch::cat({targets, p.carried.labels});
  const nn::Place place = p.batch.place.flatten(),
                  places = nn::Place::concatenate({place, p.carried.place});
  const Tensor scores =
      (g.mm(keys.t()) / std::sqrt(double(g.size(1))))
          .masked_fill(nn::visibility(place, places, p.rule).logical_not_(), nn::kUnseen);
  const Tensor match = labels.unsqueeze(0) == targets.unsqueeze(1);
  const Tensor right = scores.masked_fill(match.logical_not(), nn::kUnseen).logsumexp(1);
  (torch::logaddexp(z, scores.logsumexp(1)) - torch::logaddexp(hit, right)).sum().backward();
}

void torch_cross_entropy(Problem& p) {
  const Tensor logits = torch::linear(p.f.flatten(0, 1), p.head->weights()[0]);
  torch::nn::functional::cross_entropy(
      logits, p.batch.targets.flatten(),
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
      .backward();
}

struct Measured {
  double seconds, bytes;
};

// Best of three in a child; memory above what the problem itself takes.
Measured measure(const Shape& shape, const std::function<void(Problem&)>& run) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(74);
  const pid_t child = ::fork();
  if (child == 0) {
    nn::start(2, 1);
    Problem p = problem_of(shape);
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    Measured best{1e9, 0};
    for (int i = 0; i < 3; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      run(p);
      best.seconds =
          std::min(best.seconds,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    ::getrusage(RUSAGE_SELF, &after);
    best.bytes = 1024.0 * static_cast<double>(after.ru_maxrss - before.ru_maxrss);
    const bool sent = ::write(ends[1], &best, sizeof best) == sizeof best;
    ::_exit(sent ? 0 : 74);
  }
  Measured result{};
  const bool received = ::read(ends[0], &result, sizeof result) == sizeof result;
  ::close(ends[0]), ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
  if (!received) std::exit(70);
  return result;
}

void print(const char* name, double value, const char* unit, const std::string& peer,
           double other) {
  std::printf(
      "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"peer\":\"%s\",\"peer_value\":%.6g,"
      "\"ratio\":%.4g}\n",
      name, value, unit, peer.c_str(), other, other / value);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t tokens = argc > 1 ? std::atoll(argv[1]) : 4096;
  for (const std::int64_t width : {256, 1024}) {
    for (const std::int64_t vocabulary : {8000, 33278, 50257}) {
      for (const std::int64_t memories : {0, 512, 12288}) {
        if (width == 1024 && vocabulary != 33278) continue;
        const Shape shape{tokens, 512, vocabulary, width, memories};
        const Measured ours = measure(shape, blocked), materialised = measure(shape, whole);
        const std::string at = " d" + std::to_string(width) + " V" + std::to_string(vocabulary) +
                               " M" + std::to_string(memories);
        print("loss/time", ours.seconds, "s", "materialised" + at, materialised.seconds);
        print("loss/memory", ours.bytes, "bytes", "materialised" + at, materialised.bytes);
        if (memories > 0) continue;
        const Measured theirs = measure(shape, torch_cross_entropy);
        print("loss/time", ours.seconds, "s", "torch linear + cross_entropy" + at, theirs.seconds);
        print("loss/memory", ours.bytes, "bytes", "torch linear + cross_entropy" + at,
              theirs.bytes);
      }
    }
  }
}
