// Decoding on a device that reports what the host waits for and what could not be recorded.

#include <doctest/doctest.h>

#include "core/rng.h"
#include "device/recording.h"
#include "infer/generate/decode_session.h"
#include "infer/loops/make_engine.h"
#include "unit/infer/engines.h"
#include "unit/infer/layered_variants.h"
#include "unit/infer/transformers.h"

namespace {

constexpr std::int64_t kDecodeWords = 37;

// Two copies of a model: on the CPU and on the device.
struct Models {
  nn::Model here, there;
  explicit Models(const std::function<void(nn::ModelOptions&)>& change)
      : here(engine_model(change, kDecodeWords)), there(engine_model(change, kDecodeWords)) {
    there.to(pretend::device());
  }
};

// Feeds a token per row, a piece, a selection, then tokens again.
std::vector<std::vector<infer::RowInput>> calls(std::size_t rows, bool sources) {
  core::Rng rng(3);
  const auto words = [&](std::size_t n) {
    std::vector<std::int64_t> drawn;
    for (std::size_t i = 0; i < n; ++i)
      drawn.push_back(static_cast<std::int64_t>(rng.below(kDecodeWords)));
    return drawn;
  };
  std::vector<std::vector<infer::RowInput>> all;
  for (std::size_t call = 0; call < 36; ++call) {
    auto& feeds = all.emplace_back(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      feeds[row].tokens = words(call % 18 == 0 ? 5 + row : 1);
      if (sources && call == 0) feeds[row].source = words(4 + 3 * row);
    }
  }
  return all;
}

std::vector<std::pair<const char*, std::function<void(nn::ModelOptions&)>>> all_variants() {
  auto all = transformer_variants();
  for (const auto& other : layered_variants()) all.push_back(other);
  return all;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a token decoded on a device is waited for by nobody, and recorded and started as one") {
  const nn::CudaKernels kernels = pretend::recording_kernels();
  const auto device = pretend::device();
  const nn::AsDevice as(&kernels, device.type());
  int tried = 0;
  for (const auto& [name, change] : all_variants()) {
    DOCTEST_CAPTURE(std::string(name));
    Models models(change);
    if (!infer::DeviceEngine::fits(models.there, device)) continue;
    const auto loops = infer::make_engine(models.here, torch::kCPU, infer::Precision::float32);
    infer::DeviceEngine engine(models.there, device);
    const bool forgets = models.here.architecture->carry() == nn::Carry::forget,
               reads = nn::arch_facts(models.here.options.arch).reads_source;
    loops->open(3);
    engine.open(3);
    int call = 0, recorded = 0;
    for (const auto& feeds : calls(3, reads)) {
      const auto expected = loops->feed(feeds);
      pretend::take_waits();
      const auto got = engine.feed(feeds);
      DOCTEST_CHECK(pretend::take_waits().empty());
      DOCTEST_REQUIRE(difference(expected.output, got.output.cpu()) <
                      1e-5 * expected.output.abs().max().item<double>());
      recorded += engine.recorded() ? 1 : 0;
      if (++call % 13 == 0)
        for (infer::Engine* each : std::vector<infer::Engine*>{loops.get(), &engine})
          each->select({2, 0, 1});
      if (forgets && call > 22)
        for (infer::Engine* each : std::vector<infer::Engine*>{loops.get(), &engine})
          each->forget(10);
    }
    DOCTEST_CHECK(recorded > 24);
    ++tried;
  }
  DOCTEST_CHECK(tried == 33);
}

DOCTEST_TEST_CASE("of a text on a device nothing is waited for but what comes next") {
  const auto device = pretend::device();
  const nn::AsDevice as(nullptr, device.type());
  Models models([](nn::ModelOptions&) {});
  infer::DeviceEngine engine(models.there, device);
  infer::Session session(engine, models.there, 64, {}, device);
  session.start({{1, 2, 3}, {4, 5}});
  pretend::take_waits();
  for (int i = 0; i < 10; ++i) {
    const auto best = session.log_probs().argmax(1);
    session.advance({best[0].item<std::int64_t>(), best[1].item<std::int64_t>()});
    DOCTEST_CHECK((pretend::take_waits() == std::vector<std::string>{"copy to the host"}));
  }
}
