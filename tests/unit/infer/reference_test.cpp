// Test memories, compared with a plain version that writes out every pair, and scorers that must
// agree.
#include <doctest/doctest.h>

#include "nn/base/torch.h"
#include "plain_scores.h"
#include "tiny.h"

namespace {

using torch::Tensor;

struct ReferenceCase {
  const char* memory;
  std::int64_t reach, cache;
  const char* combine = "joint";
  double temperature = 1;
};

const std::vector<ReferenceCase> kReferenceCases = {
    {"none", 0, 0},
    {"local", 0, 0},
    {"local", 0, 0, "joint", 1.3},
    {"long", 5, 0},
    {"long", 40, 0, "joint", 0.8},
    {"long", 1000, 0},
    {"local,long", 3, 0},
    {"local,long", 33, 0, "joint", 1.2},
    {"none", 0, 1},
    {"none", 0, 25},
    {"local,long", 33, 25},
    {"local", 0, 0, "interpolate"},
    {"local,long", 33, 25, "interpolate", 1.1},
};

void agree_with_plain(torch::Dtype dtype, double tolerance) {
  const tiny::Text text = tiny::text_of({70, 51});
  const tiny::Shard shard(text);
  nn::Model model = tiny::model_of("transformer", "learned", 23, dtype);
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
      {16, 16}, {16, 5}, {16, 1}, {7, 3}, {90, 90}};
  for (const auto& [window, stride] : shapes) {
    for (const ReferenceCase& c : kReferenceCases) {
      DOCTEST_CAPTURE(window);
      DOCTEST_CAPTURE(stride);
      DOCTEST_CAPTURE(c.memory);
      DOCTEST_CAPTURE(c.reach);
      DOCTEST_CAPTURE(c.cache);
      DOCTEST_CAPTURE(c.combine);
      infer::MemoryOptions memory = tiny::memory_of(c.memory, c.reach);
      tiny::cache(memory).positions = c.cache, tiny::context(memory).combine = c.combine;
      memory.joint_temperature = c.temperature, tiny::cache(memory).theta = 0.07;
      tiny::cache(memory).lambda = 0.21, tiny::context(memory).lambda = 0.13;
      const auto windows = tiny::windows_of(window, stride);
      const Tensor found = tiny::log_probs(model, shard.data(), windows, memory);
      const Tensor expected =
          torch::tensor(plain_scores(model, text.tokens(), windows, memory), torch::kFloat64);
      DOCTEST_REQUIRE(found.numel() == expected.numel());
      DOCTEST_CHECK(tiny::largest_difference(found, expected) < tolerance);
    }
  }
}

}  // namespace

DOCTEST_TEST_CASE("memories equal the plain double loop, float64") {
  agree_with_plain(torch::kFloat64, 1e-10);
}

DOCTEST_TEST_CASE("memories equal the plain double loop, float32") {
  agree_with_plain(torch::kFloat32, 5e-5);  // some roundings of scores of about 40
}

DOCTEST_TEST_CASE("windows in one forward or one by one: the same scores") {
  const tiny::Shard shard(tiny::text_of({40, 3, 0, 1, 77}));
  nn::Model model = tiny::model_of("transformer", "rope");
  for (const char* restart : {"none", "document"}) {
    auto windows = tiny::windows_of(16, 6);
    windows.by_document = std::string(restart) == "document";
    auto memory = tiny::memory_of("local,long", 50);
    tiny::cache(memory).positions = 30;
    windows.batch_tokens = 1;
    const Tensor alone = tiny::log_probs(model, shard.data(), windows, memory);
    windows.batch_tokens = 4096;
    const Tensor together = tiny::log_probs(model, shard.data(), windows, memory);
    DOCTEST_CHECK(tiny::largest_difference(alone, together) < 1e-4);
  }
}

DOCTEST_TEST_CASE("carried token by token, in blocks and as one window: the same scores") {
  const tiny::Shard shard(tiny::text_of({60, 20}));
  struct Model {
    const char *arch, *positions;
  };
  for (const auto& [arch, positions] :
      {Model{"transformer", "rope"}, Model{"transformer", "alibi"}, Model{"lstm", "learned"}}) {
    nn::Model model = tiny::model_of(arch, positions);
    for (const char* names : {"none", "local", "local,long"}) {
      DOCTEST_CAPTURE(arch);
      DOCTEST_CAPTURE(positions);
      DOCTEST_CAPTURE(names);
      auto memory = tiny::memory_of(names);
      tiny::cache(memory).positions = 33;
      const Tensor whole = tiny::log_probs(model, shard.data(), tiny::windows_of(90, 90), memory);
      for (const std::int64_t stride : {1, 7}) {
        // Nothing is forgotten: the window holds the text.
        const Tensor carried =
            tiny::log_probs(model, shard.data(), tiny::windows_of(90, stride, true), memory);
        DOCTEST_CHECK(tiny::largest_difference(whole, carried) < 1e-4);
      }
    }
    // Blocks much smaller than the text, with State carried from block to block.
    if (model.architecture->carry() == nn::Carry::constant) {
      const auto memory = tiny::memory_of("long", 30);
      const Tensor blocks =
          tiny::log_probs(model, shard.data(), tiny::windows_of(10, 10, true), memory);
      const Tensor steps =
          tiny::log_probs(model, shard.data(), tiny::windows_of(10, 1, true), memory);
      const Tensor whole =
          tiny::log_probs(model, shard.data(), tiny::windows_of(90, 90, true), memory);
      DOCTEST_CHECK(tiny::largest_difference(blocks, steps) < 1e-4);
      DOCTEST_CHECK(tiny::largest_difference(blocks, whole) < 1e-4);
    }
  }
}

DOCTEST_TEST_CASE("with restart at documents each is scored as if it were alone") {
  const tiny::Text text = tiny::text_of({30, 1, 25, 0, 44});
  nn::Model model = tiny::model_of("transformer");
  for (const bool carried : {false, true}) {
    nn::Model& used = model;
    if (carried) used = tiny::model_of("lstm");
    auto windows = tiny::windows_of(12, 5, carried);
    windows.by_document = true;
    auto options = tiny::memory_of("local,long", 20);
    tiny::cache(options).positions = 9;
    const auto memory = infer::plan_memory(options, windows, used);
    const tiny::Shard whole(text);
    std::vector<Tensor> alone;
    double bytes = 0;
    for (const auto& document : text.documents) {
      if (document.size() < 2) continue;
      tiny::Text part = text;
      part.documents = {document};
      const tiny::Shard shard(part);
      auto none = windows;
      none.by_document = false;
      alone.push_back(tiny::log_probs(used, shard.data(), none, memory));
      bytes += infer::score(used, shard.data(), none, memory, torch::kCPU).bytes;
    }
    const Tensor found = tiny::log_probs(used, whole.data(), windows, memory);
    DOCTEST_REQUIRE(found.numel() == torch::cat(alone).numel());
    DOCTEST_CHECK(tiny::largest_difference(found, torch::cat(alone)) < 1e-5);
    const auto totals = infer::score(used, whole.data(), windows, memory, torch::kCPU);
    DOCTEST_CHECK(totals.bytes == doctest::Approx(bytes));
  }
}
