// Every architecture of the registry with every training memory: gradients, decoding, saving and
// loading, size of the carried state. A new architecture needs no line here.

#include <doctest/doctest.h>

#include "core/error.h"
#include "infer/loops/make_engine.h"
#include "nn/base/cuda.h"
#include "nn/memory/joint_loss.h"
#include "tiny.h"
#include "unit/temporary_folder.h"

namespace {

using torch::Tensor;

constexpr std::int64_t kTypes = 23, kRowSteps = 8;
const char* const kMemories[] = {
    "none", "local", "long", "ext", "local,long", "local,ext", "local,long,ext"};

bool reads_source(const std::string& arch) { return nn::arch_facts(arch).reads_source; }

// Two rows, segment `segment` of their runs; the second row ends in padding.
nn::Batch grid_batch(std::int64_t segment, bool source) {
  torch::manual_seed(20 + static_cast<std::uint64_t>(segment));
  nn::Batch batch;
  const auto row = torch::arange(2).unsqueeze(1).expand({2, kRowSteps});
  batch.inputs = torch::randint(kTypes, {2, kRowSteps}, torch::kInt64);
  batch.targets = torch::randint(kTypes, {2, kRowSteps}, torch::kInt64);
  batch.weight = torch::ones({2, kRowSteps}, torch::kFloat64);
  batch.place.run = row.clone();
  batch.place.segment = 10 * row + segment;
  batch.place.position = 100 * row + kRowSteps * segment + torch::arange(kRowSteps);
  batch.place.run.index_put_({1, kRowSteps - 1}, -1);
  batch.weight.index_put_({1, kRowSteps - 1}, 0);
  batch.fresh = torch::full({2}, segment == 0, torch::kBool);
  if (source) batch.source = torch::randint(kTypes, {2, 5}, torch::kInt64);
  return batch;
}

// The loss of two segments whose State is carried and whose memories hold both.
Tensor grid_loss(nn::Model& model, const nn::MemoryRule& rule) {
  const bool source = reads_source(model.options.arch);
  nn::State state;
  nn::Entries before;
  auto total = torch::zeros({}, torch::kFloat64);
  for (std::int64_t segment = 0; segment < 2; ++segment) {
    const auto batch = grid_batch(segment, source);
    const auto hidden = model.architecture->forward(batch, source ? nullptr : &state);
    const auto entries = nn::Entries::concatenate({nn::Entries::of(hidden.key, batch), before});
    total = total + nn::joint_loss(hidden.output, hidden.key, batch, *model.head, rule, entries);
    before = nn::Entries::of(hidden.key, batch);
  }
  return total;
}

nn::Model grid_model(const std::string& arch, torch::Dtype dtype) {
  return tiny::smooth_model_of(arch, "learned", kTypes, dtype);
}

}  // namespace

DOCTEST_TEST_CASE("the gradient of every architecture with every memory is the loss's slope") {
  for (const auto& arch : nn::architecture_names()) {
    auto model = grid_model(arch, torch::kFloat64);
    const auto weights = model.named_weights();
    std::vector<Tensor> direction;
    for (const auto& [name, weight] : weights) direction.push_back(torch::randn_like(weight));
    for (const std::string memory : kMemories) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(memory);
      const auto rule = nn::MemoryRule::parse(memory);
      model.zero_grad();
      grid_loss(model, rule).backward();
      double slope = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        DOCTEST_CAPTURE(weights[i].first);
        const auto& slope_of = weights[i].second.grad();
        DOCTEST_REQUIRE(slope_of.defined());
        DOCTEST_REQUIRE(slope_of.isfinite().all().item<bool>());
        slope += (slope_of * direction[i]).sum().item<double>();
      }
      constexpr double kStep = 1e-7;
      const auto moved = [&](double by) {
        const torch::NoGradGuard no_gradient;
        for (std::size_t i = 0; i < weights.size(); ++i)
          torch::Tensor(weights[i].second).add_(direction[i], by);
      };
      moved(kStep);
      const auto above = grid_loss(model, rule).item<double>();
      moved(-2 * kStep);
      const auto below = grid_loss(model, rule).item<double>();
      moved(kStep);
      DOCTEST_CHECK((above - below) / (2 * kStep) == doctest::Approx(slope).epsilon(1e-5));
    }
  }
}

DOCTEST_TEST_CASE("decoding token by token gives what one forward of every architecture gives") {
  const torch::NoGradGuard no_gradient;
  for (const auto& arch : nn::architecture_names()) {
    DOCTEST_CAPTURE(arch);
    auto model = grid_model(arch, torch::kFloat32);
    auto batch = grid_batch(0, reads_source(arch));
    batch.place.run = batch.place.run.clamp_min(0);  // no padding
    batch.place.run.select(0, 1).fill_(1);
    const auto whole = model.architecture->forward(batch, nullptr);
    const auto same = [&](infer::Engine& engine) {
      engine.open(2);
      for (std::int64_t t = 0; t < kRowSteps; ++t) {
        std::vector<infer::RowInput> feeds(2);
        for (std::int64_t r = 0; r < 2; ++r) {
          auto& feed = feeds[static_cast<std::size_t>(r)];
          feed.tokens = {batch.inputs[r][t].item<std::int64_t>()};
          feed.fresh = t == 0;
          for (std::int64_t s = 0; t == 0 && batch.source.defined() && s < 5; ++s)
            feed.source.push_back(batch.source[r][s].item<std::int64_t>());
        }
        const auto now = engine.feed(feeds);
        const auto close = [](const Tensor& a, const Tensor& b) {
          return tiny::largest_difference(a, b) < 1e-4 * (1 + b.abs().max().item<double>());
        };
        DOCTEST_CHECK(close(now.output, whole.output.select(1, t)));
        DOCTEST_CHECK(close(now.key, whole.key.select(1, t)));
      }
    };
    same(*infer::make_engine(model, torch::kCPU, infer::Precision::float32));
    if (dynamic_cast<nn::RingDecoder*>(model.architecture.get()) == nullptr) continue;
    const nn::AsDevice as;
    infer::DeviceEngine rings(model, torch::kCPU);
    same(rings);
  }
}

DOCTEST_TEST_CASE("every architecture with every memory is saved and loaded as it was") {
  for (const auto& arch : nn::architecture_names())
    for (const std::string memory : kMemories) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(memory);
      auto model = grid_model(arch, torch::kFloat32);
      const TemporaryFolder folder;
      model::save(folder.path, model, {{"memory", memory}, {"segment", kRowSteps}}, "");
      const auto loaded = model::load(folder.path);
      DOCTEST_CHECK(loaded.facts.memory == memory);
      model.eval();
      const torch::NoGradGuard no_gradient;
      const auto batch = grid_batch(0, reads_source(arch));
      const auto ours = model.architecture->forward(batch, nullptr),
                 theirs = loaded.model->architecture->forward(batch, nullptr);
      DOCTEST_CHECK(torch::equal(ours.output, theirs.output));
      DOCTEST_CHECK(torch::equal(ours.key, theirs.key));
    }
}

DOCTEST_TEST_CASE("a state that does not grow has the planned bytes after any number of tokens") {
  const torch::NoGradGuard no_gradient;
  int constant = 0;
  for (const auto& arch : nn::architecture_names()) {
    auto model = grid_model(arch, torch::kFloat32);
    if (model.architecture->carry() != nn::Carry::constant || nn::arch_facts(arch).layer_memory)
      continue;
    ++constant;
    DOCTEST_CAPTURE(arch);
    nn::State state;
    for (std::int64_t segment = 0; segment < 3; ++segment) {
      model.architecture->forward(grid_batch(segment, false), &state);
      DOCTEST_CHECK(state.bytes() == 2 * model.state_bytes(kRowSteps * (segment + 1)));
    }
  }
  DOCTEST_CHECK(constant >= 4);
}
