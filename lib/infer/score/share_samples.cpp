// What each source gave of each token, kept, and the best shares of it.
#include <fmt/format.h>

#include <algorithm>

#include "infer/score/share_fit.h"
#include "infer/score/share_search.h"
#include "infer/score/token_weights.h"

namespace infer {
namespace {

using torch::Tensor;

// Six digits are what a signature says.
double quoted(double share) { return std::stod(fmt::format("{:.6g}", share)); }

class AllSharesSearch : public ShareSearch {
 public:
  AllSharesSearch(const MemoryPlan& memory, const MemoryGrid& grid, std::int64_t most_bytes)
      : grid_(grid),
        models_(static_cast<std::int64_t>(memory.with.shares.size())),
        most_bytes_(most_bytes) {}

  void add(const Parts& parts) override {
    const std::int64_t n = parts.head.size(0);
    const std::vector<Tensor> given = {parts.joint,  parts.memory, parts.cache,
                                       parts.stores, parts.with,   parts.ngrams.log_prob};
    std::vector<Tensor> rows;
    rows_.clear();
    for (const auto& log_prob : given) {
      if (log_prob.defined()) rows.push_back(log_prob.reshape({-1, n}).exp());
      rows_.push_back(log_prob.defined() ? rows.back().size(0) : 0);
    }
    if (parts.ngrams.bucket.defined())
      rows.push_back(
          torch::where(parts.ngrams.bucket < 0, kNgramBuckets, parts.ngrams.bucket).unsqueeze(0));
    weighted_ = parts.weight.defined();
    if (weighted_) rows.push_back(parts.weight.unsqueeze(0));
    const std::int64_t first = (stride_ - seen_ % stride_) % stride_;
    seen_ += n;
    if (first < n) pieces_.push_back(torch::cat(rows).slice(1, first, n, stride_).contiguous());
    kept_ += first < n ? pieces_.back().nbytes() : 0;
    while (static_cast<std::int64_t>(kept_) > most_bytes_ && pieces_.size() > 1) thin();
  }

  std::vector<TunePoint> points(std::uint64_t /*tokens*/) override {
    const Tensor all = torch::cat(pieces_, 1);
    pieces_.clear();
    std::vector<TunePoint> points;
    FittedShares best;  // of the choice before: near
    for (std::size_t n = 0; n < grid_.nprobes.size(); ++n)
      for (std::size_t t = 0; t < grid_.temperatures.size(); ++t)
        for (std::size_t i = 0; i < grid_.thetas.size(); ++i)
          for (std::size_t s = 0; s < grid_.store_temperatures.size(); ++s) {
            const ShareProblem problem = problem_of(all, n, t, i, s);
            best = fit_shares(problem, best);
            FittedShares said = best;
            double rest = 1;
            for (std::size_t k = 1; k < said.shares.size(); ++k)
              rest -= said.shares[k] = quoted(said.shares[k]);
            said.shares[0] = rest;
            for (double& share : said.ngrams) share = quoted(share);
            points.push_back({grid_.nprobes[n],
                              grid_.temperatures[t],
                              grid_.thetas[i],
                              grid_.store_temperatures[s],
                              0,
                              0,
                              0,
                              share_loss(problem, said),
                              {}});
            tell(said.shares, points.back());
            ngrams_.push_back(said.ngrams);
          }
    return points;
  }

  std::vector<double> ngram_lambdas(std::size_t point) const override { return ngrams_[point]; }

 private:
  // Every second of what is kept.
  void thin() {
    const Tensor all = torch::cat(pieces_, 1);
    pieces_ = {all.slice(1, 0, all.size(1), 2).contiguous()};
    kept_ = pieces_[0].nbytes();
    stride_ *= 2;
  }

  // Rows of `all` in the order of add().
  ShareProblem problem_of(const Tensor& all, std::size_t n, std::size_t t, std::size_t i,
                          std::size_t s) const {
    std::int64_t begin = 0;
    const auto next = [&](std::size_t which) {
      begin += rows_[which];
      return all.slice(0, begin - rows_[which], begin);
    };
    const auto at = [](std::size_t row, std::size_t of, std::size_t column) {
      return static_cast<std::int64_t>(row * of + column);
    };
    const Tensor joint = next(0)[at(n, grid_.temperatures.size(), t)];
    std::vector<Tensor> sources = {joint};
    const auto add = [&](const Tensor& p) { sources.push_back(torch::where(p.isnan(), joint, p)); };
    if (const Tensor memory = next(1); memory.size(0) > 0) add(memory[at(0, 0, t)]);
    if (const Tensor cache = next(2); cache.size(0) > 0) add(cache[at(0, 0, i)]);
    if (const Tensor stores = next(3); stores.size(0) > 0)
      add(stores[at(n, grid_.store_temperatures.size(), s)]);
    const Tensor with = next(4);
    for (std::int64_t model = 0; model < models_; ++model) add(with[model]);
    ShareProblem problem{torch::stack(sources)};
    if (const Tensor ngrams = next(5); ngrams.size(0) > 0) {
      problem.ngrams = ngrams[0].nan_to_num(0);
      problem.bucket = all[begin].to(torch::kInt64);
    }
    if (weighted_) problem.weight = even(all[-1]);
    return problem;
  }

  // The shares of those that take part, in the order of problem_of().
  void tell(const std::vector<double>& shares, TunePoint& point) const {
    std::size_t next = 1;
    if (rows_[1] > 0) point.memory_lambda = shares[next++];
    if (rows_[2] > 0) point.cache_lambda = shares[next++];
    if (rows_[3] > 0) point.store_lambda = shares[next++];
    point.with_lambdas.assign(shares.begin() + static_cast<std::ptrdiff_t>(next), shares.end());
  }

  MemoryGrid grid_;
  std::int64_t models_, most_bytes_;
  std::vector<std::int64_t> rows_;  // of joint, memory, cache, stores, with, n-grams: of a piece
  std::vector<Tensor> pieces_;  // (rows, tokens) float64: probabilities, then buckets and weights
  std::size_t kept_ = 0;        // bytes
  std::int64_t stride_ = 1, seen_ = 0;
  bool weighted_ = false;
  std::vector<std::vector<double>> ngrams_;  // of each point
};

}  // namespace

std::unique_ptr<ShareSearch> search_all_shares(const MemoryPlan& memory, const MemoryGrid& grid,
                                               std::int64_t most_bytes) {
  return std::make_unique<AllSharesSearch>(memory, grid, most_bytes);
}

}  // namespace infer
