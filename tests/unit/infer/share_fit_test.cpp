// The best weights of a mixture, compared with thousands of expectation-maximisation steps in plain
// loops, and with lists of weights.
#include "infer/score/share_fit.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/rng.h"
#include "infer/score/samples.h"
#include "infer/score/tune.h"
#include "infer/sources/ngram_source.h"
#include "infer/stores/stores.h"
#include "store_of_keys.h"
#include "tiny.h"

namespace {

using torch::Tensor;
using Rows = std::vector<std::vector<double>>;

// Probabilities of sources that are right occasionally, some never better than others.
Rows sources_of(std::size_t n, std::size_t targets, std::uint64_t seed) {
  core::Rng rng(seed);
  Rows p(n);
  for (std::size_t s = 0; s < n; ++s)
    for (std::size_t r = 0; r < targets; ++r)
      p[s].push_back(s > 0 && rng.uniform() < 0.3
                         ? 0
                         : std::pow(rng.uniform(), 1 + 2.0 * static_cast<double>(s)));
  if (n > 3) p[3] = p[1];  // the same source twice
  return p;
}

// Mean 1.
Tensor weights_of(std::int64_t targets) {
  return 2 * torch::arange(1, targets + 1, torch::kFloat64) / static_cast<double>(targets + 1);
}

Tensor tensor_of(const Rows& rows) {
  std::vector<Tensor> all;
  for (const auto& row : rows) all.push_back(torch::tensor(row, torch::kFloat64));
  return torch::stack(all);
}

// Each step gives every source its share of the total probability, which never worsens the loss.
infer::FittedShares plain_fit(const Rows& p, const std::vector<double>& ngrams,
    const std::vector<std::int64_t>& bucket, int turns, const Tensor& weight) {
  const std::size_t n = p.size(), targets = p[0].size();
  infer::FittedShares at;
  at.shares.assign(n, 1.0 / static_cast<double>(n));
  if (!ngrams.empty()) at.outer.emplace_back(infer::kNgramBuckets, 0.5);
  for (int turn = 0; turn <= turns; ++turn) {
    std::vector<double> gave(n, 0), gave_ngrams(infer::kNgramBuckets + 1, 0), of(gave_ngrams);
    at.loss = 0;
    for (std::size_t r = 0; r < targets; ++r) {
      double rest = 0;
      for (std::size_t s = 0; s < n; ++s) rest += at.shares[s] * p[s][r];
      const auto b = ngrams.empty() ? 0 : static_cast<std::size_t>(bucket[r]);
      const bool known = !ngrams.empty() && bucket[r] < infer::kNgramBuckets;
      const double share = known ? at.outer[0][b] : 0, own = known ? ngrams[r] : 0;
      const double all = (1 - share) * rest + share * own;
      const double w = weight.defined() ? weight.const_data_ptr<double>()[r] : 1;
      at.loss -= w * std::log(all) / static_cast<double>(targets);
      of[b] += w, gave_ngrams[b] += w * share * own / all;
      for (std::size_t s = 0; s < n; ++s) gave[s] += w * (1 - share) * at.shares[s] * p[s][r] / all;
    }
    if (turn == turns) break;
    double sum = 0;
    for (const double one : gave) sum += one;
    for (std::size_t s = 0; s < n; ++s) at.shares[s] = gave[s] / sum;
    for (std::size_t b = 0; !ngrams.empty() && b < at.outer[0].size(); ++b)
      if (of[b] > 0) at.outer[0][b] = gave_ngrams[b] / of[b];
  }
  return at;
}

}  // namespace

DOCTEST_TEST_CASE("shares are the best of all, whatever the sources") {
  at::set_num_threads(1);
  for (const std::size_t n : {1, 2, 3, 5})
    for (const std::uint64_t seed : {1, 2, 3}) {
      const Rows p = sources_of(n, 200, seed);
      infer::ShareProblem problem{tensor_of(p)};
      if (n > 2) problem.weight = weights_of(200);
      const auto expected = plain_fit(p, {}, {}, 20000, problem.weight);
      const auto fitted = infer::fit_shares(problem);
      DOCTEST_CHECK(std::abs(fitted.loss - expected.loss) < 1e-6);
      DOCTEST_CHECK(fitted.loss == infer::share_loss(problem, fitted));
      double sum = 0;
      for (const double share : fitted.shares) {
        DOCTEST_CHECK(share >= 0);
        sum += share;
      }
      DOCTEST_CHECK(std::abs(sum - 1) < 1e-12);
      // Two equal sources may share arbitrarily.
      for (std::size_t s = 0; n <= 3 && s < n; ++s)
        DOCTEST_CHECK(std::abs(fitted.shares[s] - expected.shares[s]) < 1e-3);
      const auto again = infer::fit_shares(problem, fitted);
      DOCTEST_CHECK(std::abs(again.loss - fitted.loss) < 1e-9);
    }
}

DOCTEST_TEST_CASE("the vocabulary keeps a little where others are always better") {
  Rows p = sources_of(2, 300, 5);
  for (std::size_t r = 0; r < 300; ++r) p[1][r] = std::min(1.0, p[0][r] + 0.1);
  const auto fitted = infer::fit_shares({tensor_of(p)});
  DOCTEST_CHECK(fitted.shares[0] == doctest::Approx(infer::kLeastJointShare).epsilon(1e-6));
}

DOCTEST_TEST_CASE("n-grams get of each bucket the share that is best beside the others'") {
  at::set_num_threads(1);
  for (const std::size_t n : {1, 3})
    for (const std::uint64_t seed : {1, 2}) {
      core::Rng rng(seed + 10);
      const Rows p = sources_of(n, 300, seed);
      std::vector<double> ngrams;
      std::vector<std::int64_t> bucket;
      for (std::size_t r = 0; r < 300; ++r) {
        // Some buckets are empty, some useless, some nearly always right.
        const std::int64_t kind = static_cast<std::int64_t>(rng.below(6));
        bucket.push_back(kind == 5 ? infer::kNgramBuckets : kind == 4 ? 12 : 1 + kind);
        ngrams.push_back(kind == 0                                          ? 0
                         : rng.uniform() < 0.15 * static_cast<double>(kind) ? 0.9
                                                                            : 0.01);
      }
      infer::ShareProblem problem{tensor_of(p)};
      problem.outer.push_back({torch::tensor(ngrams, torch::kFloat64),
          torch::tensor(bucket, torch::kInt64), infer::kNgramBuckets, infer::kNgramLengthBuckets});
      if (seed == 2) problem.weight = weights_of(300);
      const auto expected = plain_fit(p, ngrams, bucket, 20000, problem.weight);
      const auto fitted = infer::fit_shares(problem);
      DOCTEST_CHECK(std::abs(fitted.loss - expected.loss) < 1e-6);
      const auto& outer = fitted.outer[0];
      DOCTEST_CHECK(outer[1] == doctest::Approx(0));
      for (const std::size_t b : {2, 3, 4, 12})
        DOCTEST_CHECK(std::abs(outer[b] - expected.outer[0][b]) < 2e-3);
      DOCTEST_CHECK(outer[5] == outer[4]);  // like the next shorter one
      DOCTEST_CHECK(outer[0] == 0);
      DOCTEST_CHECK(outer[10] == 0);
    }
}

DOCTEST_TEST_CASE("two sources with buckets get the shares that are best together") {
  at::set_num_threads(1);
  for (const std::size_t n : {1, 3}) {
    core::Rng rng(n);
    const Rows p = sources_of(n, 400, 4);
    infer::ShareProblem problem{tensor_of(p)};
    for (const double often : {0.3, 0.5}) {
      std::vector<double> own;
      std::vector<std::int64_t> bucket;
      for (std::size_t r = 0; r < 400; ++r) {
        bucket.push_back(static_cast<std::int64_t>(rng.below(3)));  // 2: no entries
        own.push_back(rng.uniform() < often ? 0.8 : 0.01);
      }
      problem.outer.push_back({torch::tensor(own, torch::kFloat64), torch::tensor(bucket), 2});
    }
    const auto fitted = infer::fit_shares(problem);
    DOCTEST_CHECK(fitted.loss == infer::share_loss(problem, fitted));
    int tried = 0;
    for (std::size_t r = 0; r < 5; ++r) {  // the fold, target by target
      double mixed = 0;
      for (std::size_t s = 0; s < n; ++s) mixed += fitted.shares[s] * p[s][r];
      auto one = problem;
      one.p = problem.p.slice(1, static_cast<std::int64_t>(r), static_cast<std::int64_t>(r) + 1);
      for (std::size_t k = 0; k < 2; ++k) {
        const auto b = static_cast<std::size_t>(
            problem.outer[k].bucket[static_cast<std::int64_t>(r)].item<std::int64_t>());
        const double own = problem.outer[k].p[static_cast<std::int64_t>(r)].item<double>();
        if (b < 2) mixed += fitted.outer[k][b] * (own - mixed);
        for (Tensor* const rows : {&one.outer[k].p, &one.outer[k].bucket})
          *rows = rows->slice(0, static_cast<std::int64_t>(r), static_cast<std::int64_t>(r) + 1);
      }
      DOCTEST_CHECK(infer::share_loss(one, fitted) == doctest::Approx(-std::log(mixed)));
    }
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t b = 0; b < 2; ++b)
        for (const double step : {-0.01, 0.01}) {
          auto other = fitted;
          auto& share = other.outer[k][b];
          share += step;
          if (share < 0 || share > infer::kMostOuterShare) continue;
          ++tried;
          DOCTEST_CHECK(infer::share_loss(problem, other) > fitted.loss);
        }
    DOCTEST_CHECK(tried > 2);
  }
}

DOCTEST_TEST_CASE("tuned shares are no worse than a full list of them, and give what is said") {
  nn::Model model = tiny::model_of("transformer", "learned", 23, torch::kFloat64);
  const tiny::Shard shard(tiny::text_of({150, 70}));
  const TemporaryFolder folder;
  tiny::make_store(folder / "s", tiny::entries_of(500, model.architecture->d_key(), 23, 1), 23);
  auto asked = tiny::memory_of("local");
  tiny::context(asked).combine = "interpolate", tiny::cache(asked).positions = 40;
  tiny::stores(asked).folders = {folder / "s"}, tiny::stores(asked).k = 60;
  const auto windows = tiny::windows_of(16, 8);
  const auto memory = infer::plan_memory(asked, windows, model, {},
      tiny::opened(std::make_shared<const infer::Stores>(
          infer::open_each(tiny::stores(asked).folders, torch::empty({0})), "m", "t", "model",
          model.architecture->d_key(), 23)));
  infer::TuneOptions grid;
  grid.points["temperature"] = {0.7, 1.4}, grid.points["theta"] = {0.03, 0.3};
  grid.points["datastore-temperature"] = {1, 4};
  auto listed = grid;
  listed.lambdas = {0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
  const auto best = infer::tune(model, shard.data(), windows, memory, grid, torch::kCPU);
  const auto of_list = infer::tune(model, shard.data(), windows, memory, listed, torch::kCPU);
  DOCTEST_CHECK(best.points.size() == 8);
  DOCTEST_CHECK(best.best.loss <= of_list.best.loss + 1e-9);
  // For each choice of temperatures too.
  const auto each = of_list.points.size() / 8;
  for (std::size_t i = 0; i < of_list.points.size(); ++i)
    DOCTEST_CHECK(best.points[i / each].loss <= of_list.points[i].loss + 1e-9);
  const auto again = infer::score(model, shard.data(), windows, best.memory, torch::kCPU);
  DOCTEST_CHECK(std::abs(again.loss() - best.best.loss) < 1e-9);
  for (const auto& edge : best.edges) DOCTEST_CHECK(edge.find("--tune-lambdas") == edge.npos);
}

DOCTEST_TEST_CASE("of a text that is too long every second, fourth ... token is kept") {
  infer::MemoryPlan memory;
  tiny::cache(memory).positions = 1;
  core::Rng rng(3);
  std::vector<double> joint, cache;
  for (int i = 0; i < 1000; ++i)
    joint.push_back(std::log(rng.uniform())), cache.push_back(std::log(rng.uniform()));
  const auto shares = [&](std::size_t every, std::int64_t bytes) {
    infer::Samples samples(bytes);
    std::vector<double> j, c;
    for (std::size_t i = 0; i < joint.size(); i += every)
      j.push_back(joint[i]), c.push_back(cache[i]);
    for (std::size_t begin = 0; begin < j.size(); begin += 50) {
      infer::Parts parts;
      const auto n = static_cast<std::int64_t>(std::min<std::size_t>(50, j.size() - begin));
      parts.head = torch::tensor(j, torch::kFloat64).narrow(0, static_cast<std::int64_t>(begin), n);
      auto& cache = parts.sources.emplace_back();
      cache.axes = {0};
      cache.separate = {torch::tensor(c, torch::kFloat64)
                            .narrow(0, static_cast<std::int64_t>(begin), n)
                            .view({1, n})};
      samples.add(parts);
    }
    return infer::fit_points(samples.parts(), memory, {}, {{}})[0].weights[0][0];
  };
  DOCTEST_CHECK(shares(1, 1000 * 8) == shares(2, 1 << 20));
  DOCTEST_CHECK(shares(1, 500 * 8) == shares(4, 1 << 20));
  DOCTEST_CHECK(shares(1, 1000 * 8) != shares(1, 1 << 20));
}
