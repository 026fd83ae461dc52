// Scoring and building a store on a device that reports waits: figures equal the CPU's, with one
// wait per batch of windows.

#include <doctest/doctest.h>

#include "device/pretend_device.h"
#include "infer/keys/store_build.h"
#include "infer/score/scorer.h"
#include "nn/base/cuda.h"
#include "unit/infer/store_of_keys.h"
#include "unit/infer/tiny_pairs.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kWords = 23;

struct Case {
  std::string memory = "none";
  std::int64_t cache = 0;
  bool stores = false, carried = false, kernels = false, adaptive = false;
  std::string combine = "joint";
};

// float64 has no kernels: a figure that differs is not due to rounding.
nn::Model model_of(const std::string& arch, const Case& c) {
  const auto type = c.kernels ? torch::kFloat32 : torch::kFloat64;
  nn::Model model = tiny::model_of(arch, "sinusoidal", kWords, type);
  if (!c.adaptive) return model;
  nn::ModelOptions options = model.options;
  options.vocabulary.cutoffs = {5, 12};
  nn::Model other(options, kWords);
  other.to(type);
  other.eval();
  return other;
}

struct Result {
  Tensor log_probs;
  std::vector<std::string> waits;
  std::int64_t batches = 0;
};

class Scoring {
 public:
  explicit Scoring(std::string arch) : arch_(std::move(arch)) {
    const auto width = tiny::model_of(arch_).architecture->d_key();
    for (const char* name : {"one", "two"})
      tiny::make_store(folder_ / name, tiny::entries_of(120, width, kWords, name[0]), kWords,
          {"l2", "exact", name});
  }

  Result run(const Case& c, torch::Device device) const {
    nn::Model model = model_of(arch_, c);
    model.to(device);
    const bool pairs = nn::arch_facts(arch_).reads_source;
    const auto& data = pairs ? *pairs_.data : text_.data();
    auto windows =
        pairs ? infer::pair_windows(data, model, 64) : tiny::windows_of(16, 8, c.carried);
    windows.batch_tokens = 64;
    infer::MemoryOptions memory = tiny::memory_of(c.memory);
    if (c.memory == "local,long") tiny::context(memory).long_reach = "33";
    tiny::context(memory).combine = c.combine, tiny::cache(memory).positions = c.cache,
    tiny::cache(memory).lambda = 0.2;
    tiny::stores(memory).k = 9;
    std::shared_ptr<const infer::Stores> stores;
    if (c.stores)
      stores = std::make_shared<const infer::Stores>(
          infer::open_each({folder_ / "one", folder_ / "two"}, model.head->weights().at(0)), "m",
          "t", "model", model.architecture->d_key(), kWords);
    const auto plan = infer::plan_memory(memory, windows, model, {}, tiny::opened(stores));
    Result result;
    std::vector<Tensor> blocks;
    infer::Callbacks watch;
    std::uint64_t last = 0;
    watch.scored = [&](const infer::Scored& scored) {
      DOCTEST_CHECK(scored.first >= last);
      last = scored.first;
      blocks.push_back(scored.log_prob);
    };
    watch.progress = [&](std::uint64_t) { ++result.batches; };
    pretend::take_waits();
    infer::score(model, data, windows, plan, device, watch);
    result.waits = pretend::take_waits();
    result.log_probs = torch::cat(blocks);
    return result;
  }

 private:
  std::string arch_;
  tiny::Shard text_{tiny::text_of({150, 41}, kWords)};
  tiny::Pairs pairs_;
  TemporaryFolder folder_;
};

}  // namespace

DOCTEST_TEST_CASE("a text is scored on a device as on the CPU, with a wait a batch of windows") {
  const std::vector<Case> cases = {{}, {.memory = "local"}, {.memory = "local,long"},
      {.memory = "local,long", .kernels = true}, {.memory = "local", .adaptive = true},
      {.memory = "local,long", .cache = 20, .combine = "interpolate"},
      {.memory = "local", .stores = true, .combine = "both"}, {.stores = true},
      {.memory = "local,long", .carried = true}};
  static const nn::CudaKernels emulated;
  const auto device = pretend::device();
  for (const auto& arch : nn::architecture_names()) {
    const Scoring scoring(arch);
    for (const Case& c : cases) {
      if ((c.carried && arch != "lstm") || (c.kernels && arch != "transformer")) continue;
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(c.memory);
      DOCTEST_CAPTURE(c.stores);
      DOCTEST_CAPTURE(c.kernels);
      DOCTEST_CAPTURE(c.adaptive);
      const Result here = scoring.run(c, torch::kCPU);
      const nn::AsDevice as(c.kernels ? &emulated : nullptr, device.type());
      const Result there = scoring.run(c, device);
      const double most = c.kernels || c.stores ? 1e-4 : 1e-9;  // stores' scores are float32
      DOCTEST_CHECK(tiny::largest_difference(here.log_probs, there.log_probs) < most);
      DOCTEST_CHECK(there.batches == here.batches);
      DOCTEST_CHECK(there.batches > 3);
      // With stores: the queries, and the results of both stores.
      std::string waits;
      for (const auto& wait : there.waits) waits += wait + "; ";
      DOCTEST_CAPTURE(waits);
      DOCTEST_CHECK(
          std::count(there.waits.begin(), there.waits.end(), "an event") == there.batches);
      DOCTEST_CHECK(std::ssize(there.waits) == (c.stores ? 4 : 1) * there.batches);
    }
  }
}
