// Exact search by torch's operators, on the CPU and on a device that reports waits, compared with
// the CPU loops and with a sort of all scores.
#include "infer/stores/device_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "core/rng.h"
#include "device/pretend_device.h"
#include "infer/stores/stores.h"
#include "store/exact_search.h"
#include "unit/infer/store_of_keys.h"

namespace {

using store::Half;
using store::Metric;
using torch::Tensor;

constexpr std::int64_t kAllKeys = std::numeric_limits<std::int64_t>::max();

// Eighths from -2 to 2: their products are exact in any order, and many scores are equal.
struct Problem {
  std::int64_t width, k;
  std::vector<Half> keys;
  std::vector<float> queries;
  Problem(std::int64_t rows, std::int64_t width_, std::int64_t n, std::int64_t k_, float step = 8)
      : width(width_), k(k_) {
    core::Rng rng(static_cast<std::uint64_t>(rows + n));
    const auto numbers = [&](std::int64_t count) {
      std::vector<float> all(static_cast<std::size_t>(count));
      for (float& x : all) x = (static_cast<float>(rng.below(33)) - 16) / step;
      return all;
    };
    const auto values = numbers(rows * width);
    keys.resize(values.size());
    store::to_half(values.data(), keys);
    queries = numbers(n * width);
  }
};

struct Found {
  std::vector<std::int64_t> ids;
  std::vector<float> scores;
  bool operator==(const Found&) const = default;
};

Found search(const store::KeySearch& by, const Problem& problem) {
  const auto n = problem.queries.size() / static_cast<std::size_t>(problem.width) *
                 static_cast<std::size_t>(problem.k);
  Found found{std::vector<std::int64_t>(n, -7), std::vector<float>(n)};
  by.search(problem.queries, problem.k, 1, found.ids, found.scores);
  return found;
}

Found plain(const Problem& problem, Metric metric) {
  const auto width = static_cast<std::size_t>(problem.width);
  const std::size_t rows = problem.keys.size() / width;
  std::vector<float> keys(problem.keys.size());
  store::to_float(problem.keys.data(), keys);
  Found found;
  for (std::size_t q = 0; q < problem.queries.size() / width; ++q) {
    std::vector<float> scores(rows);
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t j = 0; j < width; ++j) {
        const float x = problem.queries[q * width + j], y = keys[row * width + j];
        scores[row] += metric == Metric::ip ? x * y : -(x - y) * (x - y);
      }
    std::vector<std::int64_t> order(rows);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    for (std::size_t i = 0; i < static_cast<std::size_t>(problem.k); ++i) {
      found.ids.push_back(i < rows ? order[i] : -1);
      found.scores.push_back(i < rows ? scores[static_cast<std::size_t>(order[i])]
                                      : -std::numeric_limits<float>::infinity());
    }
  }
  return found;
}

std::vector<torch::Device> devices() { return {torch::kCPU, pretend::device()}; }

}  // namespace

DOCTEST_TEST_CASE("exact search on a device finds what the CPU finds, in its order") {
  struct Shape {
    std::int64_t rows, width, n, k;
  };
  for (const Shape& shape : {Shape{0, 3, 2, 2}, Shape{1, 1, 1, 1}, Shape{5, 3, 2, 8},
           Shape{16, 4, 3, 16}, Shape{97, 33, 3, 97}, Shape{1000, 5, 33, 7},
           Shape{500, 17, 70, 100}, Shape{2000, 2, 3, 1500}}) {
    const Problem problem(shape.rows, shape.width, shape.n, shape.k);
    for (const Metric metric : {Metric::ip, Metric::l2}) {
      const Found expected = plain(problem, metric);
      DOCTEST_CHECK(
          (search(store::ExactSearch(problem.keys, problem.width, metric), problem) == expected));
      for (const auto device : devices())
        for (const bool stay : {false, true})
          for (const std::int64_t blocks : {1L, 4'000L, 40'000L, 1L << 30}) {
            DOCTEST_CAPTURE(shape.rows);
            DOCTEST_CAPTURE(shape.k);
            DOCTEST_CAPTURE(device.str());
            DOCTEST_CAPTURE(stay);
            DOCTEST_CAPTURE(blocks);
            const infer::DeviceSearch there(
                problem.keys, problem.width, metric, device, {stay ? kAllKeys : 0, blocks, 0});
            DOCTEST_CHECK((there.resident_bytes() > 0) == (stay && shape.rows > 0));
            DOCTEST_CHECK((search(there, problem) == expected));
          }
    }
  }
}

DOCTEST_TEST_CASE("scores of any numbers are the CPU's to rounding") {
  const Problem problem(700, 64, 9, 50, /*step=*/7.3F);
  for (const Metric metric : {Metric::ip, Metric::l2}) {
    const Found expected = search(store::ExactSearch(problem.keys, problem.width, metric), problem);
    const infer::DeviceSearch there(
        problem.keys, problem.width, metric, pretend::device(), {0, 30'000, 0});
    const Found found = search(there, problem);
    for (std::size_t i = 0; i < found.ids.size(); ++i)
      DOCTEST_REQUIRE(found.scores[i] ==
                      doctest::Approx(static_cast<double>(expected.scores[i])).epsilon(1e-5));
  }
}

DOCTEST_TEST_CASE("a key that is no number is nobody's neighbour, and 0 is not above -0") {
  Problem problem(40, 1, 2, 40);
  problem.queries = {1, -1};
  std::fill(problem.keys.begin(), problem.keys.end(), Half{0});
  for (const std::size_t row : {3, 17}) problem.keys[row] = 0x7e00;  // NaN
  for (const std::size_t row : {1, 30}) problem.keys[row] = 0x8000;  // -0
  for (const auto device : devices())
    for (const std::int64_t blocks : {1L, 1L << 30}) {
      const infer::DeviceSearch there(problem.keys, 1, Metric::ip, device, {kAllKeys, blocks});
      const Found found = search(there, problem);
      DOCTEST_CHECK(
          found.ids == search(store::ExactSearch(problem.keys, 1, Metric::ip), problem).ids);
      DOCTEST_CHECK(std::count(found.ids.begin(), found.ids.end(), -1) == 4);
      DOCTEST_CHECK(std::is_sorted(found.ids.begin(), found.ids.begin() + 38));
    }
}

DOCTEST_TEST_CASE("a search waits for its result, and keys that come for it two blocks behind") {
  const Problem problem(1000, 8, 50, 20);
  const auto searched = [&](std::int64_t room) {
    const infer::DeviceSearch there(problem.keys, problem.width, Metric::l2, pretend::device(),
        {room, 12'800});  // blocks of 192 rows
    pretend::take_waits();
    pretend::take_copies();
    search(there, problem);
    return pretend::take_waits();
  };
  DOCTEST_CHECK(searched(kAllKeys) == std::vector<std::string>{"copy to the host"});
  DOCTEST_CHECK(pretend::take_copies().all == 1);  // the queries
  auto waits = searched(problem.width * 1000 * 2 - 1);
  const auto copies = pretend::take_copies();
  DOCTEST_CHECK(copies.beside == 6);
  DOCTEST_CHECK(copies.all == 7);
  DOCTEST_CHECK(std::count(waits.begin(), waits.end(), "copy to the host") == 1);
  DOCTEST_CHECK(std::count(waits.begin(), waits.end(), "an event") == 4);
  DOCTEST_CHECK(waits.size() == 5);
}

DOCTEST_TEST_CASE("a few queries do not have the keys come") {
  for (const std::int64_t n : {31, 32}) {
    const Problem problem(200, 8, n, 20);
    const infer::DeviceSearch there(
        problem.keys, problem.width, Metric::ip, pretend::device(), {0});
    pretend::take_copies();
    DOCTEST_CHECK((search(there, problem) == plain(problem, Metric::ip)));
    DOCTEST_CHECK((pretend::take_copies().all == 0) == (n < 32));
  }
}

DOCTEST_TEST_CASE("several stores on a device are one, and a text does not see its own entries") {
  constexpr std::int64_t kWidth = 12, kWords = 23;
  const TemporaryFolder folder;
  for (const char* metric : {"ip", "l2"}) {
    const std::string one = folder / std::string("one-") + metric,
                      two = folder / std::string("two-") + metric;
    tiny::make_store(
        one, tiny::entries_of(120, kWidth, kWords, 1), kWords, {metric, "exact", "text 1"});
    tiny::make_store(
        two, tiny::entries_of(80, kWidth, kWords, 2), kWords, {metric, "exact", "text 2"});
    const auto open = [&](const Tensor& like) {
      return infer::Stores(infer::open_each({one, two}, like), "m", "t", "model", kWidth, kWords);
    };
    const auto here = open(torch::empty({0})),
               there = open(torch::empty({0}).to(pretend::device()));
    const Tensor queries = torch::randn({31, kWidth}).mul(16).round().div(16);
    for (const shard::Fingerprints& own : {shard::Fingerprints{}, {"text 1"}})
      for (const std::int64_t k : {1, 50, 300}) {
        pretend::take_waits();
        const auto found = there.search(queries.to(pretend::device()), k, 1, false, own);
        const auto expected = here.search(queries, k, 1, false, own);
        DOCTEST_CHECK(torch::equal(found.rows, expected.rows));
        DOCTEST_CHECK(torch::equal(found.stores, expected.stores));
        DOCTEST_CHECK(torch::equal(found.labels, expected.labels));
        DOCTEST_CHECK(torch::allclose(found.scores, expected.scores, 1e-5));
      }
  }
}

DOCTEST_TEST_CASE("stores share a device's room; what has an index is not looked at there") {
  const TemporaryFolder folder;
  tiny::make_store(folder / "one", tiny::entries_of(100, 4, 9, 1), 9);
  tiny::make_store(folder / "two", tiny::entries_of(100, 4, 9, 2), 9);
  tiny::make_store(folder / "index", tiny::entries_of(400, 4, 9, 3), 9, {"ip", "IVF2,SQ4"});
  infer::DeviceRoom room{1000};
  for (const char* name : {"index", "one", "two"}) {
    store::Datastore store(folder / name);
    infer::search_on(store, pretend::device(), room);
  }
  DOCTEST_CHECK(room.keys == 200);
}
