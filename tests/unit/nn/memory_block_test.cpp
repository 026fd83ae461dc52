// MemoryBlock in float32 (tiles of entries, see memory_kernels.h), compared with float64 (whole
// masks). Places have many tiles: completely visible, partly visible and invisible.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "device/pretend_device.h"
#include "nn/base/cuda.h"
#include "nn/base/torch.h"
#include "nn/memory/memory_block.h"
#include "plain_sees.h"

namespace {

using torch::Tensor;

// Returns runs of `lengths` tokens in segments of `segment`; every 50th token is padding.
nn::TokenPositions place_of(
    const std::vector<std::int64_t>& lengths, std::int64_t segment, bool padded) {
  std::vector<std::int64_t> run, part, position;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    for (std::int64_t i = 0; i < lengths[r]; ++i) {
      const bool padding = padded && run.size() % 50 == 49;
      run.push_back(padding ? -1 : static_cast<std::int64_t>(r));
      part.push_back(static_cast<std::int64_t>(1000 * r) + i / segment);
      position.push_back(static_cast<std::int64_t>(10000 * r) + i);
    }
  }
  return {torch::tensor(run), torch::tensor(part), torch::tensor(position)};
}

struct Result {
  Tensor all, positive, d_queries, d_keys;
};

Result result_of(const Tensor& queries, const Tensor& keys, const Tensor& targets,
    const nn::TokenPositions& place, const nn::MemoryRule& rule) {
  const nn::Entries entries{keys, targets, place};
  nn::MemoryBlock block(queries, place, targets, entries, rule);
  Result result{block.all, block.positive, {}, torch::zeros_like(keys)};
  const Tensor d_all = torch::linspace(-1, 1, queries.size(0), queries.options());
  result.d_queries = block.backward(d_all, d_all.cos(), result.d_keys);
  return result;
}

void expect_near(const Tensor& fast, const Tensor& plain) {
  DOCTEST_CHECK(torch::allclose(fast.to(torch::kFloat64), plain, 1e-4, 2e-5));
}

}  // namespace

DOCTEST_TEST_CASE("tiles are seen, hidden or looked at as the truth table says, for every pair") {
  for (const bool padded : {false, true}) {
    const nn::TokenPositions place = place_of({150, 1, 70, 129}, 40, padded);
    const auto size = place.size();
    const nn::PositionIds tokens{place.run.const_data_ptr<std::int64_t>(),
        place.segment.const_data_ptr<std::int64_t>(), place.position.const_data_ptr<std::int64_t>(),
        size};
    for (const std::string names :
        {"local", "long", "ext", "local,long", "local,ext", "long,ext"}) {
      for (const std::int64_t reach : {0, 30, 100}) {
        for (const bool drop : {false, true}) {
          nn::MemoryRule rule = nn::MemoryRule::parse(names);
          rule.reach = reach, rule.drop_own_segment = drop;
          const Tensor seen = nn::visibility(place, place, rule);
          const bool* const table = seen.const_data_ptr<bool>();
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < size; ++i)
            for (std::int64_t j = 0; j < size; ++j)
              wrong += table[i * size + j] != plain::sees(rule, tokens.at(i), tokens.at(j));
          DOCTEST_CAPTURE(names);
          DOCTEST_CAPTURE(reach);
          DOCTEST_CAPTURE(drop);
          DOCTEST_CHECK(wrong == 0);
        }
      }
    }
  }
}

DOCTEST_TEST_CASE("tiles of entries give the masses and gradients of whole masks, for every rule") {
  torch::manual_seed(11);
  for (const bool padded : {false, true}) {
    for (const std::int64_t segment : {40, 128}) {
      const nn::TokenPositions place = place_of({300, 1, 70, 129}, segment, padded);
      const auto size = place.size();
      const Tensor queries = torch::randn({size, 8}, torch::kFloat64),
                   keys = torch::randn({size, 8}, torch::kFloat64),
                   targets = torch::randint(5, {size}, torch::kInt64);
      for (const std::string names :
          {"local", "long", "ext", "local,long", "local,ext", "long,ext"}) {
        for (const std::int64_t reach : {0, 100}) {
          for (const bool drop : {false, true}) {
            for (const auto metric : {nn::Metric::ip, nn::Metric::l2}) {
              nn::MemoryRule rule = nn::MemoryRule::parse(names);
              rule.reach = reach, rule.drop_own_segment = drop, rule.metric = metric;
              DOCTEST_CAPTURE(names);
              DOCTEST_CAPTURE(reach);
              DOCTEST_CAPTURE(drop);
              const Result plain = result_of(queries, keys, targets, place, rule);
              const Result fast = result_of(
                  queries.to(torch::kFloat32), keys.to(torch::kFloat32), targets, place, rule);
              expect_near(fast.all, plain.all);
              expect_near(fast.positive, plain.positive);
              expect_near(fast.d_queries, plain.d_queries);
              expect_near(fast.d_keys, plain.d_keys);
            }
          }
        }
      }
    }
  }
}

// Tiles of a device's kernels, which run emulated: fewer cases.
DOCTEST_TEST_CASE("kernels give the masses and gradients of whole masks, for every rule") {
  torch::manual_seed(13);
  const nn::CudaKernels emulated;
  const auto device = pretend::device();
  const nn::AsDevice as(&emulated, device.type());
  const auto check = [&](const nn::TokenPositions& place, const nn::MemoryRule& rule) {
    const auto size = place.size();
    const Tensor queries = torch::randn({size, 8}, torch::kFloat64),
                 keys = torch::randn({size, 8}, torch::kFloat64),
                 targets = torch::randint(5, {size}, torch::kInt64);
    const Result plain = result_of(queries, keys, targets, place, rule);
    const auto there = [&](const Tensor& x) { return x.to(device, torch::kFloat32); };
    const Result got = result_of(there(queries), there(keys), targets.to(device), place, rule);
    expect_near(got.all.cpu(), plain.all);
    expect_near(got.positive.cpu(), plain.positive);
    expect_near(got.d_queries.cpu(), plain.d_queries);
    expect_near(got.d_keys.cpu(), plain.d_keys);
  };
  for (const std::string names : {"local", "long", "ext", "local,long", "local,ext", "long,ext"}) {
    for (const bool drop : {false, true}) {
      for (const auto metric : {nn::Metric::ip, nn::Metric::l2}) {
        nn::MemoryRule rule = nn::MemoryRule::parse(names);
        rule.reach = drop ? 0 : 60, rule.drop_own_segment = drop, rule.metric = metric;
        DOCTEST_CAPTURE(names);
        DOCTEST_CAPTURE(drop);
        check(place_of({90, 1, 70}, 40, /*padded=*/drop), rule);
      }
    }
  }
  check(place_of({1100}, 40, /*padded=*/false), nn::MemoryRule::parse("local"));  // two parts
}

DOCTEST_TEST_CASE("scores too far below the largest give no mass, and no infinity") {
  const nn::TokenPositions place = place_of({100}, 100, false);
  Tensor keys = torch::zeros({100, 4});
  keys.select(0, 0).fill_(1000);
  const Tensor queries = torch::ones({100, 4}), targets = torch::arange(100);
  nn::MemoryRule rule = nn::MemoryRule::parse("local");
  const nn::Entries entries{keys, targets.roll(-1), place};
  const nn::MemoryBlock block(queries, place, targets, entries, rule);
  DOCTEST_CHECK(block.all.isfinite().all().item<bool>());
  DOCTEST_CHECK(block.all[99].item<float>() == doctest::Approx(2000));
  DOCTEST_CHECK(block.positive.slice(0, 2).lt(-1e29).all().item<bool>());
}

DOCTEST_TEST_CASE("masses at several temperatures at once are those of a block at each") {
  torch::manual_seed(12);
  const nn::TokenPositions place = place_of({300, 70}, 40, /*padded=*/true);
  const auto size = place.size();
  const Tensor queries = torch::randn({size, 8}, torch::kFloat64) * 2,
               keys = torch::randn({size, 8}, torch::kFloat64) * 2,
               targets = torch::randint(5, {size}, torch::kInt64);
  const std::vector<double> temperatures = {0.25, 1, 1.7, 10};
  for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
    for (const std::string names : {"local", "long", "local,ext"}) {
      for (const std::int64_t top_k : {0, 3}) {
        for (const auto metric : {nn::Metric::ip, nn::Metric::l2}) {
          nn::MemoryRule rule = nn::MemoryRule::parse(names);
          rule.top_k = top_k, rule.metric = metric, rule.temperature = 7;
          const nn::Entries entries{keys.to(dtype), targets, place};
          const auto at_once =
              nn::tempered_masses(queries.to(dtype), place, targets, entries, rule, temperatures);
          DOCTEST_CAPTURE(names);
          DOCTEST_CHECK(at_once.all.size(0) == 4);
          for (std::int64_t t = 0; t < 4; ++t) {
            rule.temperature = temperatures[static_cast<std::size_t>(t)];
            const nn::MemoryBlock block(queries.to(dtype), place, targets, entries, rule);
            DOCTEST_CHECK(torch::allclose(at_once.all[t], block.all, 1e-5, 1e-5));
            DOCTEST_CHECK(torch::allclose(at_once.positive[t], block.positive, 1e-5, 1e-5));
          }
        }
      }
    }
  }
}
