// decode/ARCH: tokens per second for one row of text, head included, of each architecture's
// decoding loops and of its modules. Weights are float32, bfloat16 and int8 (modules: float32),
// after a context of 256 tokens. Runs alternate; the best of five counts.
//
// usage: bench_decode [ARCH...]; prints JSON lines

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "infer/loops/make_engine.h"
#include "measured.h"
#include "nn/base/runtime.h"

namespace {

constexpr std::int64_t kVocabulary = 8192, kContext = 256, kTokens = 48;

struct Size {
  const char* name;
  std::int64_t layers, d_model, heads;
};
constexpr Size kSizes[] = {{"d256", 4, 256, 4}, {"d768", 12, 768, 12}};

/// Returns the seconds for kTokens tokens in sequence.
double seconds_of_tokens(infer::Engine& engine) {
  const torch::NoGradGuard no_gradient;
  std::vector<std::int64_t> prompt;
  for (std::int64_t i = 0; i < kContext; ++i) prompt.push_back(i * 131 % kVocabulary);
  engine.open(1);
  engine.feed({{prompt}});
  return bench::seconds_of([&] {
    for (std::int64_t i = 0; i < kTokens; ++i) {
      const auto hidden = engine.feed({{{i * 17 % kVocabulary}}});
      engine.head().log_probs(hidden.output, nullptr);
    }
  });
}

void bench_arch(const std::string& arch, const Size& size) {
  nn::ModelOptions options;
  options.arch = arch;
  options.shape.layers = size.layers, options.shape.d_model = size.d_model;
  options.shape.heads = size.heads, options.transformer.context = 1024;
  if (arch == "transformer-xl" || arch == "srupp") options.layer_memory.layer_memory = "256";
  nn::Model model(options, kVocabulary);
  model.eval();
  std::vector<std::unique_ptr<infer::Engine>> engines;
  engines.push_back(std::make_unique<infer::ModuleEngine>(model, torch::kCPU));
  const std::vector<std::string> precisions{"float32", "bfloat16", "int8"};
  for (const auto& precision : precisions)
    engines.push_back(infer::make_engine(model, torch::kCPU, infer::parse_precision(precision)));
  std::vector<double> best(engines.size(), 1e9);
  for (int turn = 0; turn < 5; ++turn)
    for (std::size_t i = 0; i < engines.size(); ++i)
      best[i] = std::min(best[i], seconds_of_tokens(*engines[i]));
  for (std::size_t i = 0; i < precisions.size(); ++i)
    bench::print("decode/" + arch + "-" + size.name + " " + precisions[i], kTokens / best[i + 1],
        "tokens/s", "modules, float32", kTokens / best[0], best[0] / best[i + 1]);
}

}  // namespace

int main(int argc, char** argv) {
  nn::start(2, 1);
  std::vector<std::string> archs(argv + 1, argv + argc);
  if (archs.empty()) archs = {"transformer", "transformer-xl", "mosaic", "gla", "lstm", "srupp"};
  for (const auto& arch : archs)
    for (const auto& size : kSizes) bench_arch(arch, size);
}
