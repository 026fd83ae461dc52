// Test memories against a plain version that writes every pair out, and scorers that must agree.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "nn/torch.h"
#include "tiny.h"

namespace {

using torch::Tensor;

// All of it by double loops: sliding windows, one forward each; entries of the window are those of
// its own encoding, entries before it stand as they were scored.
std::vector<double> plain(nn::Model& model, const std::vector<std::uint32_t>& tokens,
                          const infer::WindowOptions& windows, infer::MemoryOptions memory) {
  const torch::NoGradGuard no_gradient;
  infer::WindowOptions resolved = windows;
  infer::resolve(resolved, memory, model);
  const auto n = static_cast<std::int64_t>(tokens.size()) - 1;  // inputs
  const std::int64_t W = resolved.window, S = resolved.stride;
  const double width = static_cast<double>(model.architecture->d_key());
  const bool local = memory.rule().local, far = memory.rule().far;
  std::vector<double> log_probs;
  std::map<std::int64_t, std::pair<Tensor, Tensor>> kept;  // position -> f, g as scored
  for (std::int64_t number = 0;; ++number) {
    const std::int64_t start = number * S;
    const std::int64_t from = number == 0 ? 0 : (number - 1) * S + W;
    if (from >= n) break;
    const std::int64_t end = std::min(start + W, n);
    nn::Batch batch;
    batch.inputs = torch::empty({1, end - start}, torch::kInt64);
    for (std::int64_t i = start; i < end; ++i)
      batch.inputs[0][i - start] = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i)]);
    const Tensor at = torch::arange(start, end).unsqueeze(0);
    batch.targets = torch::zeros_like(batch.inputs);
    batch.weight = torch::ones({1, end - start});
    batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
    batch.fresh = torch::ones({1}, torch::kBool);
    const nn::Hidden hidden = model.architecture->forward(batch, nullptr);
    const auto key = [&](std::int64_t j) {
      return j >= start ? std::make_pair(hidden.f[0][j - start].to(torch::kFloat64),
                                         hidden.g[0][j - start].to(torch::kFloat64))
                        : kept.at(j);
    };
    for (std::int64_t i = from; i < end; ++i) {
      const auto label = [&](std::int64_t j) { return tokens[static_cast<std::size_t>(j + 1)]; };
      const auto [f, g] = key(i);
      Tensor log_z;
      const Tensor words =
          model.head->log_probs(hidden.f[0].slice(0, i - start, i - start + 1), &log_z);
      const double z = log_z.item<double>(), head = words[0][label(i)].item<double>();
      double all = 0, hit = 0, cache_all = 0, cache_hit = 0;
      for (std::int64_t j = 0; j < i; ++j) {
        const auto [f_j, g_j] = key(j);
        if ((local && j >= start) || (far && i - j <= memory.long_tokens)) {
          const double mass =
              std::exp(g.dot(g_j).item<double>() / (std::sqrt(width) * memory.joint_temperature));
          all += mass;
          if (label(j) == label(i)) hit += mass;
        }
        if (memory.cache > 0 && i - j <= memory.cache) {
          const double mass = std::exp(memory.cache_theta * f.dot(f_j).item<double>());
          cache_all += mass;
          if (label(j) == label(i)) cache_hit += mass;
        }
      }
      double joint = std::exp(head);
      double l_m = memory.interpolated() ? memory.memory_lambda : 0;
      double l_c = memory.cache > 0 ? memory.cache_lambda : 0;
      if (!memory.interpolated()) joint = (std::exp(head + z) + hit) / (std::exp(z) + all);
      if (all == 0) l_m = 0;
      if (cache_all == 0) l_c = 0;
      double p = (1 - l_m - l_c) * joint;
      if (l_m > 0) p += l_m * hit / all;
      if (l_c > 0) p += l_c * cache_hit / cache_all;
      log_probs.push_back(std::log(p));
    }
    for (std::int64_t i = from; i < end; ++i) kept[i] = key(i);
  }
  return log_probs;
}

struct Case {
  const char* memory;
  std::int64_t reach, cache;
  const char* combine = "joint";
  double temperature = 1;
};

const std::vector<Case> kCases = {
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
    for (const Case& c : kCases) {
      DOCTEST_CAPTURE(window);
      DOCTEST_CAPTURE(stride);
      DOCTEST_CAPTURE(c.memory);
      DOCTEST_CAPTURE(c.reach);
      DOCTEST_CAPTURE(c.cache);
      DOCTEST_CAPTURE(c.combine);
      infer::MemoryOptions memory = tiny::memory_of(c.memory, c.reach);
      memory.cache = c.cache, memory.combine = c.combine;
      memory.joint_temperature = c.temperature, memory.cache_theta = 0.07;
      memory.cache_lambda = 0.21, memory.memory_lambda = 0.13;
      const auto windows = tiny::windows_of(window, stride);
      const Tensor found = tiny::log_probs(model, shard.data(), windows, memory);
      const Tensor expected =
          torch::tensor(plain(model, text.tokens(), windows, memory), torch::kFloat64);
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
  agree_with_plain(torch::kFloat32, 2e-5);
}

DOCTEST_TEST_CASE("windows in one forward or one by one: the same scores") {
  const tiny::Shard shard(tiny::text_of({40, 3, 0, 1, 77}));
  nn::Model model = tiny::model_of("transformer", "rope");
  for (const char* restart : {"none", "document"}) {
    auto windows = tiny::windows_of(16, 6);
    windows.restart = restart;
    auto memory = tiny::memory_of("local,long", 50);
    memory.cache = 30;
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
      memory.cache = 33;
      const Tensor whole = tiny::log_probs(model, shard.data(), tiny::windows_of(90, 90), memory);
      for (const std::int64_t stride : {1, 7}) {
        // Nothing is forgotten: the window holds the text.
        const Tensor carried =
            tiny::log_probs(model, shard.data(), tiny::windows_of(90, stride, "on"), memory);
        DOCTEST_CHECK(tiny::largest_difference(whole, carried) < 1e-4);
      }
    }
    // Blocks much smaller than the text, State carried from one to the next.
    if (model.architecture->carry() == nn::Carry::constant) {
      const auto memory = tiny::memory_of("long", 30);
      const Tensor blocks =
          tiny::log_probs(model, shard.data(), tiny::windows_of(10, 10, "on"), memory);
      const Tensor steps =
          tiny::log_probs(model, shard.data(), tiny::windows_of(10, 1, "on"), memory);
      const Tensor whole =
          tiny::log_probs(model, shard.data(), tiny::windows_of(90, 90, "on"), memory);
      DOCTEST_CHECK(tiny::largest_difference(blocks, steps) < 1e-4);
      DOCTEST_CHECK(tiny::largest_difference(blocks, whole) < 1e-4);
    }
  }
}

DOCTEST_TEST_CASE("with restart at documents each is scored as if it were alone") {
  const tiny::Text text = tiny::text_of({30, 1, 25, 0, 44});
  nn::Model model = tiny::model_of("transformer");
  for (const char* carry : {"off", "on"}) {
    nn::Model& used = model;
    if (std::string(carry) == "on") used = tiny::model_of("lstm");
    auto windows = tiny::windows_of(12, 5, carry);
    windows.restart = "document";
    auto memory = tiny::memory_of("local,long", 20);
    memory.cache = 9;
    const tiny::Shard whole(text);
    std::vector<Tensor> alone;
    double bytes = 0;
    for (const auto& document : text.documents) {
      if (document.size() < 2) continue;
      tiny::Text part = text;
      part.documents = {document};
      const tiny::Shard shard(part);
      auto none = windows;
      none.restart = "none";
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
