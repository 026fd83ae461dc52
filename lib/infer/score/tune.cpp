#include "infer/score/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "core/error.h"
#include "infer/score/gate_samples.h"
#include "infer/score/report.h"

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

struct Grid {
  MemoryGrid sources;
  Tensor shares;                            // (L, sources)
  std::vector<double> ngram_lambdas = {0};  // K
  // (n_nprobes, n_temperatures, n_thetas, n_store_temperatures, L, B + 1, K): sums of -log p over the
  // tokens of each bucket of n-grams with each share; last those of no bucket.
  Tensor nats;

  void add(const Parts& parts) {
    for (std::int64_t n = 0; n < nats.size(0); ++n)
      for (std::int64_t t = 0; t < nats.size(1); ++t) add(parts, n, t);
  }
  void add(const Parts& parts, std::int64_t n, std::int64_t t) {
    const Tensor joint = parts.joint[n][t].exp();
    const Tensor memory = parts.memory.defined() ? probability(parts.memory[t], joint) : joint;
    std::vector<Tensor> sources = {joint, memory, joint, joint};
    for (std::int64_t i = 0; parts.with.defined() && i < parts.with.size(0); ++i)
      sources.push_back(probability(parts.with[i], joint));
    for (std::int64_t i = 0; i < nats.size(2); ++i) {
      if (parts.cache.defined()) sources[2] = probability(parts.cache[i], joint);
      for (std::int64_t s = 0; s < nats.size(3); ++s) {
        if (parts.stores.defined()) sources[3] = probability(parts.stores[n][s], joint);
        const Tensor mixture = shares.mm(torch::stack(sources));  // (L, R)
        add(nats[n][t][i][s], mixture, parts.ngrams);
      }
    }
  }
  // sums (L, B + 1, K), rest (L, R)
  void add(Tensor sums, const Tensor& rest, const NgramScores& ngrams) const {
    if (!ngrams.bucket.defined()) {
      sums.select(1, kNgramBuckets).select(1, 0).sub_(rest.clamp_min(kTiny).log_().sum(1));
      return;
    }
    const Tensor bucket = torch::where(ngrams.bucket < 0, kNgramBuckets, ngrams.bucket);
    const Tensor p = ngrams.log_prob.exp().nan_to_num(0);
    for (std::size_t k = 0; k < ngram_lambdas.size(); ++k) {
      const Tensor share = (bucket < kNgramBuckets) * ngram_lambdas[k];
      const Tensor mixture = rest * (1 - share) + p * share;
      sums.select(2, static_cast<std::int64_t>(k))
          .index_add_(1, bucket, mixture.clamp_min_(kTiny).log_(), /*alpha=*/-1);
    }
  }
};

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

// The points that were given; or the steps, in this unit, to four digits: a signature quotes them.
std::vector<double> scaled(std::vector<double> given, const std::vector<double>& steps,
                           double unit) {
  if (given.empty())
    for (const double step : steps) given.push_back(std::stod(fmt::format("{:.4g}", step * unit)));
  return given;
}

Grid make_grid(const MemoryPlan& memory, const TuneOptions& options, const nn::Model& model) {
  const StorePlan& stores = memory.stores;
  const bool context = memory.rule.any(), cache = memory.cache > 0;
  if (!context && !cache && !stores.any() && !memory.ngrams.any() && !memory.with.any())
    core::fail(core::Code::usage,
               "--tune: there is nothing to tune; add --memory local,long, --cache N, "
               "--datastore STORE, --ngrams FOLDER or --with MODEL");
  if (memory.gates.any() && options.nprobes.size() > 1)
    core::fail(core::Code::usage, "--tune-nprobes: with gates it takes one");
  Grid grid;
  const std::vector<double> lambdas = scaled(options.lambdas, kLambdas, 1);
  grid.sources.fill(memory);
  if (stores.any() && !options.nprobes.empty()) grid.sources.nprobes = options.nprobes;
  if (stores.interpolated()) {
    auto& points = grid.sources.store_temperatures;
    points = scaled(options.store_temperatures, kStoreTemperatureSteps, stores.temperature);
    if (options.store_temperatures.empty() && std::count(points.begin(), points.end(), 1) == 0)
      points.insert(std::upper_bound(points.begin(), points.end(), 1), 1);
  }
  if (context || stores.joined())
    grid.sources.temperatures =
        scaled(options.temperatures, kTemperatureSteps, memory.rule.temperature);
  if (cache)
    grid.sources.thetas = scaled(options.thetas, kThetaSteps,
                                 1 / std::sqrt(static_cast<double>(model.architecture->d_model())));
  const std::vector<double> none = {0};
  std::vector<std::vector<double>> others = {memory.interpolated() ? lambdas : none,
                                             cache ? lambdas : none,
                                             stores.interpolated() ? lambdas : none};
  others.insert(others.end(), memory.with.shares.size(), lambdas);
  grid.shares = combinations(others);
  if (memory.ngrams.any()) grid.ngram_lambdas = scaled(options.lambdas, kNgramLambdas, 1);
  const auto size = [](const auto& points) { return static_cast<std::int64_t>(points.size()); };
  grid.nats = torch::zeros({size(grid.sources.nprobes), size(grid.sources.temperatures),
                            size(grid.sources.thetas), size(grid.sources.store_temperatures),
                            grid.shares.size(0), kNgramBuckets + 1, size(grid.ngram_lambdas)},
                           torch::kFloat64);
  return grid;
}

std::vector<TunePoint> points_of(const Grid& grid, std::uint64_t tokens) {
  const Tensor best =
      grid.nats.amin(-1).sum(-1).flatten();  // n-grams' shares do not depend on others'
  const auto* sum = best.const_data_ptr<double>();
  const auto shares = grid.shares.accessor<double, 2>();
  std::vector<TunePoint> points;
  for (const std::int64_t nprobe : grid.sources.nprobes)
    for (const double temperature : grid.sources.temperatures)
      for (const double theta : grid.sources.thetas)
        for (const double store_temperature : grid.sources.store_temperatures)
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

// Values of the best point at the edge of what was tried.
std::vector<std::string> edges_of(const TunePoint& best, const std::vector<TunePoint>& points) {
  std::vector<std::string> edges;
  const auto look = [&](const char* flag, auto value, double natural) {
    const auto less = [&](const auto& a, const auto& b) { return value(a) < value(b); };
    const auto [least, most] = std::minmax_element(points.begin(), points.end(), less);
    const double chosen = value(best), low = value(*least), high = value(*most);
    if (low < high && chosen != natural && (chosen == low || chosen == high))
      edges.push_back(fmt::format("--{} {}", flag, chosen));
  };
  look("tune-temperatures", std::mem_fn(&TunePoint::temperature), 0);
  look("tune-thetas", std::mem_fn(&TunePoint::theta), 0);
  look("tune-datastore-temperatures", std::mem_fn(&TunePoint::store_temperature), 0);
  for (const auto share :
       {&TunePoint::memory_lambda, &TunePoint::cache_lambda, &TunePoint::store_lambda})
    look("tune-lambdas", std::mem_fn(share), 0);
  for (std::size_t i = 0; i < best.with_lambdas.size(); ++i)
    look(
        "tune-lambdas", [i](const TunePoint& point) { return point.with_lambdas[i]; }, 0);
  return edges;
}

// The gates, at the point with that number.
void fit_gates_of(Tuned& tuned, const Grid& grid, const GateSamples& samples, std::int64_t point) {
  point /= grid.shares.size(0);
  const std::int64_t store_temperature = point % grid.nats.size(3);
  point /= grid.nats.size(3);
  const std::int64_t theta = point % grid.nats.size(2);
  const std::int64_t temperature = point / grid.nats.size(2) % grid.nats.size(1);
  const auto fitted = fit_gates(samples.at(temperature, theta, store_temperature), tuned.memory);
  tuned.memory.gates.gate = fitted.gate;
  tuned.gates = {fitted.constant_loss, fitted.loss};
  tuned.totals.nats = fitted.loss * static_cast<double>(tuned.totals.tokens);
}

}  // namespace

void TuneOptions::fields(core::FieldList& f) {
  f.group("Tuning");
  f("tune", data, "validation shard: choose temperatures, thetas and shares on it");
  f("tune-output", output, "write what was chosen to this file, for --config");
  f("tune-temperatures", temperatures,
    "joint temperatures to try [0.5 to 3 times --joint-temperature]")
      .above(0)
      .at_most(1e6);
  f("tune-thetas", thetas, "thetas of the cache to try [1/8 to 8, over sqrt(width of f)]")
      .above(0)
      .at_most(1e6);
  f("tune-lambdas", lambdas, "shares to try [0 to 0.8]").at_least(0).below(1);
  f("tune-datastore-temperatures", store_temperatures,
    "temperatures of the stores' own distribution to try [1, and 1/80 to 4 times "
    "--datastore-temperature]")
      .above(0)
      .at_most(1e6);
  f("tune-nprobes", nprobes, "numbers of lists to try, a search each [--nprobe]").between(1, 1e6);
}

void TuneOptions::check(const std::vector<std::string>& files) const {
  if (!output.empty() && data.empty())
    core::fail(core::Code::usage, "--tune-output: there is no --tune");
  if (data == "-" && (files.empty() || std::find(files.begin(), files.end(), "-") != files.end()))
    core::fail(core::Code::usage, "--tune: two inputs are -; stdin can be read only once");
}

std::string Tuned::summary() const {
  auto text =
      fmt::format("perplexity {:.4f}, the best of {} points", std::exp(best.loss), points.size());
  if (gates)
    text += fmt::format("; with gates {:.4f}, on tokens that have {:.4f} without",
                        std::exp(gates->second), std::exp(gates->first));
  if (edges.empty()) return text;
  return fmt::format("{}; a better one may lie beyond {}, at the edge of what was tried", text,
                     fmt::join(edges, ", "));
}

Tuned tune(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
           const MemoryPlan& memory, const TuneOptions& options, torch::Device device,
           const std::function<void(std::uint64_t)>& progress) {
  Grid grid = make_grid(memory, options, model);
  Watch watch;
  GateSamples samples;
  watch.scored = [&](const Scored& scored) {
    grid.add(scored.parts);
    if (memory.gates.any()) samples.add(scored.parts);
  };
  watch.progress = progress;
  Tuned tuned;
  MemoryPlan searched = memory;
  searched.gates.threshold = 0;
  tuned.totals = walk(model, data, windows, searched, grid.sources, device, watch);
  tuned.points = points_of(grid, tuned.totals.tokens);
  const auto chosen =
      std::min_element(tuned.points.begin(), tuned.points.end(),
                       [](const auto& a, const auto& b) { return a.loss < b.loss; });
  tuned.best = *chosen;
  if (!std::isfinite(tuned.best.loss))
    core::fail(core::Code::bad_data,
               "{}: the loss is not finite; the model's weights may be damaged", data.name());
  tuned.edges = edges_of(tuned.best, tuned.points);
  tuned.totals.nats = tuned.best.loss * static_cast<double>(tuned.totals.tokens);
  tuned.memory = memory;
  if (memory.ngrams.any()) {
    tuned.memory.ngrams.lambda = best_ngram_lambdas(
        grid.nats.flatten(0, 4)[chosen - tuned.points.begin()], grid.ngram_lambdas);
  }
  tuned.memory.rule.temperature = tuned.best.temperature;
  if (memory.interpolated()) tuned.memory.memory_lambda = tuned.best.memory_lambda;
  if (memory.cache > 0) {
    tuned.memory.cache_theta = tuned.best.theta;
    tuned.memory.cache_lambda = tuned.best.cache_lambda;
  }
  StorePlan& stores = tuned.memory.stores;
  stores.nprobe = tuned.best.nprobe;
  if (stores.interpolated()) {
    stores.temperature = tuned.best.store_temperature;
    stores.lambda = tuned.best.store_lambda;
  }
  for (std::size_t i = 0; i < memory.with.shares.size(); ++i)
    tuned.memory.with.shares[i].lambda = tuned.best.with_lambdas[i];
  if (memory.gates.any()) fit_gates_of(tuned, grid, samples, chosen - tuned.points.begin());
  tuned.memory.tuned_on = short_fingerprint(data.fingerprint());
  return tuned;
}

}  // namespace infer
