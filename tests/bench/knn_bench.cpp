// knn/*: milliseconds a query of exact search, 300,000 keys of 256 coordinates, the 1,024 nearest:
// in batches of 1,000 queries and one by one, beside FAISS's flat index (the FAISS that is linked,
// on the BLAS that is linked, and Python's), turn by turn; and beside the index of Python's faiss
// that keeps keys as ours does, in 16 bits (IndexScalarQuantizer, QT_fp16).
//
// usage: bench_knn [ROWS]; prints JSON lines. PEERS: a python with faiss

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/rng.h"
#include "store/builder.h"
#include "store/exact_search.h"
#include "store/index.h"

namespace {

constexpr std::int64_t kWidth = 256, kNeighbours = 1024, kQueries = 1000, kAlone = 10;
constexpr int kTurns = 3;

struct Problem {
  std::vector<store::Half> halves;
  std::vector<float> keys, queries;
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(kQueries * kNeighbours);
  std::vector<float> scores = std::vector<float>(kQueries * kNeighbours);
};

Problem make_problem(std::int64_t rows) {
  core::Rng rng(1);
  Problem p;
  p.keys.resize(static_cast<std::size_t>(rows * kWidth));
  for (float& x : p.keys) x = static_cast<float>(rng.normal());
  p.halves.resize(p.keys.size());
  store::to_half(p.keys.data(), p.halves);
  store::to_float(p.halves.data(), p.keys);
  p.queries.resize(kQueries * kWidth);
  for (float& x : p.queries) x = static_cast<float>(rng.normal());
  return p;
}

// Searches n queries at once, or one by one.
using Search = std::function<void(std::span<const float> queries)>;

double batch_ms(Problem& p, const Search& search) {
  const auto start = std::chrono::steady_clock::now();
  search(p.queries);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count() * 1e3 / kQueries;
}

double single_ms(Problem& p, const Search& search) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t q = 0; q < kAlone; ++q) search(std::span(&p.queries[q * kWidth], kWidth));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return taken.count() * 1e3 / kAlone;
}

// "batch single" of an index of Python's (flat or fp16), on keys of its own of the same shape.
bool ask_python(const std::string& index, std::int64_t rows, double& batch, double& single) {
  const char* python = std::getenv("PEERS");
  if (python == nullptr) return false;
  const std::string command = std::string(python) + " tests/bench/knn_peer.py " + index + " " +
                              std::to_string(rows) + " " + std::to_string(omp_get_max_threads());
  std::FILE* answer = ::popen(command.c_str(), "r");
  if (answer == nullptr) return false;
  const bool read = std::fscanf(answer, "%lf %lf", &batch, &single) == 2;
  return ::pclose(answer) == 0 && read;
}

void figure(const std::string& name, double value, const std::string& unit, const std::string& peer,
    double other, bool lower = true) {
  std::printf(
      "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g}\n",
      name.c_str(), value, unit.c_str(), peer.c_str(), other,
      lower ? other / value : value / other);
}

double best(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 1 ? std::atoll(argv[1]) : 300'000;
  Problem p = make_problem(rows);
  const store::ExactSearch exact(p.halves, kWidth, store::Metric::ip);
  const auto flat = store::Index::make("Flat", kWidth, store::Metric::ip);
  flat->add(p.keys);
  const auto run = [&](const auto& body) {
    return Search([&, body](std::span<const float> queries) {
      const std::size_t n = queries.size() / kWidth * kNeighbours;
      body(queries, std::span(p.ids).first(n), std::span(p.scores).first(n));
    });
  };
  const Search ours = run([&](auto q, auto ids, auto scores) {
    exact.search(q, kNeighbours, omp_get_max_threads(), ids, scores);
  });
  const Search faiss =
      run([&](auto q, auto ids, auto scores) { flat->search(q, kNeighbours, 1, ids, scores); });
  std::map<std::string, std::vector<double>> times;
  single_ms(p, ours), single_ms(p, faiss);  // warms up pages and threads
  bool python = true;
  for (int turn = 0; turn < kTurns; ++turn) {
    times["ours batch"].push_back(batch_ms(p, ours));
    times["faiss batch"].push_back(batch_ms(p, faiss));
    times["ours single"].push_back(single_ms(p, ours));
    times["faiss single"].push_back(single_ms(p, faiss));
    if (turn != 1) continue;
    for (const std::string index : {"flat", "fp16"}) {
      double batch = 0, single = 0;
      python = python && ask_python(index, rows, batch, single);
      times[index + " batch"].push_back(batch);
      times[index + " single"].push_back(single);
    }
  }
  for (const std::string what : {"batch", "single"}) {
    const double own = best(times["ours " + what]);
    figure("knn/" + what, own, "ms", "FAISS flat, as linked", best(times["faiss " + what]));
    if (!python) continue;
    figure("knn/" + what, own, "ms", "Python's faiss flat", best(times["flat " + what]));
    figure("knn/" + what, own, "ms", "Python's faiss fp16", best(times["fp16 " + what]));
  }
  if (!python) std::fprintf(stderr, "knn_bench: no python with faiss in PEERS: it is left out\n");
}
