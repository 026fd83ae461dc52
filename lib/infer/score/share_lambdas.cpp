// Shares of a list, all combinations of them.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "infer/score/share_search.h"
#include "infer/score/token_weights.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr double kLeastJoint = 1e-9;  // more than sums of shares are rounded by
constexpr double kTiny = 1e-300;  // keeps the logarithm of a probability that underflowed finite

constexpr std::size_t kFirstWith = 4;  // among the sources
constexpr std::int64_t kMostCombinations = 1 << 18;

// Shares of p_joint, then of the others, whose values are given, a row a combination: (L, sources).
Tensor combinations(const std::vector<std::vector<double>>& others) {
  std::vector<std::vector<double>> rows = {{1}};
  for (const auto& values : others) {
    std::vector<std::vector<double>> more;
    for (const auto& row : rows)
      for (const double value : values) {
        if (row[0] - value <= kLeastJoint) continue;
        more.push_back(row);
        more.back()[0] -= value;
        more.back().push_back(value);
      }
    rows = std::move(more);
    if (std::ssize(rows) > kMostCombinations)
      core::fail(core::Code::usage,
                 "--tune: more than {} combinations of shares; give fewer --tune-lambdas",
                 kMostCombinations);
  }
  std::vector<double> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return torch::tensor(flat, torch::kFloat64).view({std::ssize(rows), std::ssize(others) + 1});
}

// exp of a source's log p; joint's where it sees nothing.
Tensor probability(const Tensor& log_prob, const Tensor& joint) {
  return torch::where(log_prob.isnan(), joint, log_prob.exp());
}

// The share of each bucket that is best for it; where no token was of it, that of the next shorter
// suffixes. sums (B + 1, K).
std::vector<double> best_ngram_lambdas(const Tensor& sums, const std::vector<double>& tried) {
  std::vector<double> best;
  for (std::int64_t b = 0; b < kNgramBuckets; ++b) {
    const bool empty = sums[b].count_nonzero().item<std::int64_t>() == 0;
    const auto k = static_cast<std::size_t>(sums[b].argmin().item<std::int64_t>());
    best.push_back(empty && b % kNgramLengthBuckets > 0 ? best.back() : empty ? 0 : tried[k]);
  }
  return best;
}

class LambdaSearch : public ShareSearch {
 public:
  LambdaSearch(const MemoryPlan& memory, const MemoryGrid& grid, const std::vector<double>& lambdas)
      : grid_(grid) {
    const std::vector<double> none = {0};
    std::vector<std::vector<double>> others = {memory.interpolated() ? lambdas : none,
                                               memory.cache > 0 ? lambdas : none,
                                               memory.stores.interpolated() ? lambdas : none};
    others.insert(others.end(), memory.with.shares.size(), lambdas);
    shares_ = combinations(others);
    if (memory.ngrams.any()) ngram_lambdas_ = lambdas;
    const auto size = [](const auto& points) { return static_cast<std::int64_t>(points.size()); };
    nats_ = torch::zeros(
        {size(grid.nprobes), size(grid.temperatures), size(grid.thetas),
         size(grid.store_temperatures), shares_.size(0), kNgramBuckets + 1, size(ngram_lambdas_)},
        torch::kFloat64);
  }

  void add(const Parts& parts) override {
    for (std::int64_t n = 0; n < nats_.size(0); ++n)
      for (std::int64_t t = 0; t < nats_.size(1); ++t) add(parts, n, t);
  }

  std::vector<TunePoint> points(std::uint64_t tokens) override {
    const Tensor best =
        nats_.amin(-1).sum(-1).flatten();  // n-grams' shares do not depend on others'
    const auto* sum = best.const_data_ptr<double>();
    const auto shares = shares_.accessor<double, 2>();
    std::vector<TunePoint> points;
    for (const std::int64_t nprobe : grid_.nprobes)
      for (const double temperature : grid_.temperatures)
        for (const double theta : grid_.thetas)
          for (const double store_temperature : grid_.store_temperatures)
            for (std::int64_t l = 0; l < shares.size(0); ++l) {
              const double* const row = shares[l].data();
              points.push_back({nprobe,
                                temperature,
                                theta,
                                store_temperature,
                                row[1],
                                row[2],
                                row[3],
                                *sum++ / static_cast<double>(tokens),
                                {row + kFirstWith, row + shares.size(1)}});
            }
    return points;
  }

  std::vector<double> ngram_lambdas(std::size_t point) const override {
    return best_ngram_lambdas(nats_.flatten(0, 4)[static_cast<std::int64_t>(point)],
                              ngram_lambdas_);
  }

 private:
  void add(const Parts& parts, std::int64_t n, std::int64_t t) {
    const Tensor joint = parts.joint[n][t].exp();
    const Tensor memory = parts.memory.defined() ? probability(parts.memory[t], joint) : joint;
    std::vector<Tensor> sources = {joint, memory, joint, joint};
    for (std::int64_t i = 0; parts.with.defined() && i < parts.with.size(0); ++i)
      sources.push_back(probability(parts.with[i], joint));
    for (std::int64_t i = 0; i < nats_.size(2); ++i) {
      if (parts.cache.defined()) sources[2] = probability(parts.cache[i], joint);
      for (std::int64_t s = 0; s < nats_.size(3); ++s) {
        if (parts.stores.defined()) sources[3] = probability(parts.stores[n][s], joint);
        const Tensor mixture = shares_.mm(torch::stack(sources));  // (L, R)
        add(nats_[n][t][i][s], mixture, parts);
      }
    }
  }
  // sums (L, B + 1, K), rest (L, R)
  void add(Tensor sums, const Tensor& rest, const Parts& parts) const {
    const NgramScores& ngrams = parts.ngrams;
    const auto log_of = [&](const Tensor& mixture) {
      return weighted(mixture.clamp_min(kTiny).log_(), parts.weight);
    };
    if (!ngrams.bucket.defined()) {
      sums.select(1, kNgramBuckets).select(1, 0).sub_(log_of(rest).sum(1));
      return;
    }
    const Tensor bucket = torch::where(ngrams.bucket < 0, kNgramBuckets, ngrams.bucket);
    const Tensor p = ngrams.log_prob.exp().nan_to_num(0);
    for (std::size_t k = 0; k < ngram_lambdas_.size(); ++k) {
      const Tensor share = (bucket < kNgramBuckets) * ngram_lambdas_[k];
      sums.select(2, static_cast<std::int64_t>(k))
          .index_add_(1, bucket, log_of(rest * (1 - share) + p * share), /*alpha=*/-1);
    }
  }

  MemoryGrid grid_;
  Tensor shares_;                            // (L, sources)
  std::vector<double> ngram_lambdas_ = {0};  // K
  // (n_nprobes, n_temperatures, n_thetas, n_store_temperatures, L, B + 1, K): sums of -log p over
  // the tokens of each bucket of n-grams with each share; last those of no bucket.
  Tensor nats_;
};

}  // namespace

std::unique_ptr<ShareSearch> search_lambdas(const MemoryPlan& memory, const MemoryGrid& grid,
                                            const std::vector<double>& lambdas) {
  return std::make_unique<LambdaSearch>(memory, grid, lambdas);
}

}  // namespace infer
