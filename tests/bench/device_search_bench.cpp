// search/*: queries per second of exact search on a device with random keys, compared with the CPU
// loops. The keys are on the device, or are copied from the host for each search. Exits with 1 if
// the scores differ.
//
// usage: bench_device_search [DEVICE [ROWS [WIDTH [K [QUERIES]]]]]; prints JSON lines

#include <sys/sysinfo.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/rng.h"
#include "infer/stores/device_search.h"
#include "measured.h"
#include "nn/base/runtime.h"
#include "store/exact_search.h"

namespace {

constexpr std::int64_t kCompared = 64;  // queries to compare, because the CPU is slow

// Returns float16 numbers in [0.5, 1) and [-1, -0.5), four for each number drawn.
std::vector<store::Half> random_keys(std::int64_t n) {
  core::Rng rng(1);
  std::vector<store::Half> keys(static_cast<std::size_t>(n));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    bits = i % 4 == 0 ? rng.next() : bits >> 16;
    keys[i] = static_cast<store::Half>((bits & 0x83ffU) | 0x3800U);
  }
  return keys;
}

struct Found {
  std::vector<std::int64_t> ids;
  std::vector<float> scores;
};

struct Problem {
  std::int64_t width, k;
  std::vector<float> queries;
  Found search(const store::KeySearch& by, std::int64_t n) const {
    Found found{std::vector<std::int64_t>(static_cast<std::size_t>(n * k)),
        std::vector<float>(static_cast<std::size_t>(n * k))};
    by.search(std::span(queries).first(static_cast<std::size_t>(n * width)), k, get_nprocs(),
        found.ids, found.scores);
    return found;
  }
  double per_s(const store::KeySearch& by, std::int64_t n) const {
    search(by, std::min(n, kCompared));  // warms up memory and threads
    return static_cast<double>(n) / bench::seconds_of([&] { search(by, n); });
  }
};

bool agree(const Found& a, const Found& b) {
  for (std::size_t i = 0; i < a.scores.size(); ++i)
    if (!(std::abs(a.scores[i] - b.scores[i]) <= 1e-4F * std::max(1.0F, std::abs(b.scores[i]))))
      return false;
  return true;
}

std::int64_t argument(int argc, char** argv, int i, std::int64_t otherwise) {
  return argc > i ? std::atoll(argv[i]) : otherwise;
}

int run(int argc, char** argv) {
  nn::start(get_nprocs(), 1);
  const auto device = nn::device(argc > 1 ? argv[1] : "auto");
  const auto rows = argument(argc, argv, 2, 300'000), width = argument(argc, argv, 3, 256),
             k = argument(argc, argv, 4, 1024), n = argument(argc, argv, 5, 1000);
  const auto keys = random_keys(rows * width);
  Problem problem{width, k, std::vector<float>(static_cast<std::size_t>(n * width))};
  core::Rng rng(2);
  for (float& x : problem.queries) x = static_cast<float>(rng.normal());
  const store::ExactSearch loops(keys, width, store::Metric::ip);
  const std::int64_t compared = std::min(n, kCompared);
  const Found expected = problem.search(loops, compared);
  const double here = problem.per_s(loops, compared);
  const auto room = infer::device_room(device);
  for (const bool stay : {true, false}) {
    const infer::DeviceSearch there(
        keys, width, store::Metric::ip, device, {stay ? room.keys : 0, room.blocks, 0});
    if (stay && there.resident_bytes() == 0) continue;
    if (!agree(problem.search(there, compared), expected)) {
      std::fprintf(stderr, "bench_device_search: the device finds other scores than the loops\n");
      return 1;
    }
    const double value = problem.per_s(there, n);
    std::printf(
        "{\"name\":\"search/%lld/%s\",\"value\":%.6g,\"unit\":\"queries/s\",\"peer\":\"the "
        "processors' loops\",\"peer_value\":%.6g,\"ratio\":%.3f}\n",
        static_cast<long long>(rows), stay ? "resident" : "streamed", value, here, value / here);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const core::Error& error) {
    std::fprintf(stderr, "bench_device_search: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
