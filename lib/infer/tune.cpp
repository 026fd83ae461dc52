#include "infer/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "infer/report.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr double kTiny = 1e-300;  // keeps the logarithm of a probability that underflowed finite

constexpr std::int64_t kSources = 4;

// Shares of p_joint, p_memory, p_cache and p_stores, a row a combination: (L, 4) with the unused at
// 0.
Tensor combinations(const std::vector<double>& memory, const std::vector<double>& cache,
                    const std::vector<double>& stores) {
  std::vector<double> rows;
  for (const double l_m : memory)
    for (const double l_c : cache)
      for (const double l_s : stores)
        if (l_m + l_c + l_s < 1) rows.insert(rows.end(), {1 - l_m - l_c - l_s, l_m, l_c, l_s});
  const auto n = static_cast<std::int64_t>(rows.size()) / kSources;
  return torch::tensor(rows, torch::kFloat64).view({n, kSources});
}

// exp of a source's log p; joint's where it sees nothing.
Tensor probability(const Tensor& log_prob, const Tensor& joint) {
  return torch::where(log_prob.isnan(), joint, log_prob.exp());
}

struct Grid {
  MemoryGrid sources;
  Tensor shares;  // (L, 4)
  Tensor nats;    // (n_nprobes, n_temperatures, n_thetas, n_store_temperatures, L): sums of -log p

  void add(const Parts& parts) {
    for (std::int64_t n = 0; n < nats.size(0); ++n)
      for (std::int64_t t = 0; t < nats.size(1); ++t) add(parts, n, t);
  }
  void add(const Parts& parts, std::int64_t n, std::int64_t t) {
    const Tensor joint = parts.joint[n][t].exp();
    const Tensor memory = parts.memory.defined() ? probability(parts.memory[t], joint) : joint;
    for (std::int64_t i = 0; i < nats.size(2); ++i) {
      const Tensor cache = parts.cache.defined() ? probability(parts.cache[i], joint) : joint;
      for (std::int64_t s = 0; s < nats.size(3); ++s) {
        const Tensor stores =
            parts.stores.defined() ? probability(parts.stores[n][s], joint) : joint;
        const Tensor mixture = shares.mm(torch::stack({joint, memory, cache, stores}));  // (L, R)
        nats[n][t][i][s].sub_(mixture.clamp_min_(kTiny).log_().sum(1));
      }
    }
  }
};

void check_points(const char* flag, const std::vector<double>& points, bool share) {
  for (const double x : points)
    if (!std::isfinite(x) || (share ? x < 0 || x >= 1 : x <= 0))
      core::fail(core::Code::usage, "--{}: {} is no {}", flag, x,
                 share ? "share from 0 on and below 1" : "number above 0");
}

// The points that were given; or the steps, in this unit, to four digits: a signature quotes them.
std::vector<double> scaled(std::vector<double> given, const std::vector<double>& steps,
                           double unit) {
  if (given.empty())
    for (const double step : steps) given.push_back(std::stod(fmt::format("{:.4g}", step * unit)));
  return given;
}

Grid make_grid(const MemoryOptions& memory, const TuneOptions& options, const nn::Model& model) {
  const StoreOptions& stores = memory.stores;
  const bool context = memory.rule().any(), cache = memory.cache > 0;
  if (!context && !cache && !stores.any())
    core::fail(core::Code::usage,
               "--tune: there is nothing to tune; add --memory local,long, --cache N or "
               "--datastore STORE");
  Grid grid;
  const std::vector<double> lambdas = scaled(options.lambdas, kLambdas, 1);
  grid.sources.fill(memory);
  if (stores.any() && !options.nprobes.empty()) grid.sources.nprobes = options.nprobes;
  if (stores.interpolated())
    grid.sources.store_temperatures =
        scaled(options.store_temperatures, kStoreTemperatureSteps, stores.temperature);
  if (context || stores.joined())
    grid.sources.temperatures =
        scaled(options.temperatures, kTemperatureSteps, memory.joint_temperature);
  if (cache)
    grid.sources.thetas = scaled(options.thetas, kThetaSteps,
                                 1 / std::sqrt(static_cast<double>(model.architecture->d_model())));
  const std::vector<double> none = {0};
  grid.shares = combinations(memory.interpolated() ? lambdas : none, cache ? lambdas : none,
                             stores.interpolated() ? lambdas : none);
  const auto size = [](const auto& points) { return static_cast<std::int64_t>(points.size()); };
  grid.nats = torch::zeros(
      {size(grid.sources.nprobes), size(grid.sources.temperatures), size(grid.sources.thetas),
       size(grid.sources.store_temperatures), grid.shares.size(0)},
      torch::kFloat64);
  return grid;
}

std::vector<TunePoint> points_of(const Grid& grid, std::uint64_t tokens) {
  const Tensor nats = grid.nats.flatten();
  const auto* sum = nats.const_data_ptr<double>();
  const auto shares = grid.shares.accessor<double, 2>();
  std::vector<TunePoint> points;
  for (const std::int64_t nprobe : grid.sources.nprobes)
    for (const double temperature : grid.sources.temperatures)
      for (const double theta : grid.sources.thetas)
        for (const double store_temperature : grid.sources.store_temperatures)
          for (std::int64_t l = 0; l < shares.size(0); ++l)
            points.push_back({nprobe, temperature, theta, store_temperature, shares[l][1],
                              shares[l][2], shares[l][3], *sum++ / static_cast<double>(tokens)});
  return points;
}

}  // namespace

void TuneOptions::fields(core::FieldList& f) {
  f.group("Tuning");
  f("tune-temperatures", temperatures,
    "joint temperatures to try [0.5 to 3 times --joint-temperature]");
  f("tune-thetas", thetas, "thetas of the cache to try [1/8 to 8, over sqrt(width of f)]");
  f("tune-lambdas", lambdas, "shares to try [0 to 0.8]");
  f("tune-datastore-temperatures", store_temperatures,
    "temperatures of the stores' own distribution to try [0.05 to 4 times "
    "--datastore-temperature]");
  f("tune-nprobes", nprobes, "numbers of lists to try, a search each [--nprobe]");
}

Tuned tune(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
           MemoryOptions memory, const TuneOptions& options, torch::Device device,
           const std::function<void(std::uint64_t)>& progress) {
  check_points("tune-temperatures", options.temperatures, false);
  check_points("tune-thetas", options.thetas, false);
  check_points("tune-lambdas", options.lambdas, true);
  check_points("tune-datastore-temperatures", options.store_temperatures, false);
  for (const std::int64_t nprobe : options.nprobes)
    if (nprobe < 1) core::fail(core::Code::usage, "--tune-nprobes: {} lists", nprobe);
  resolve(windows, memory, model);
  Grid grid = make_grid(memory, options, model);
  Watch watch;
  watch.scored = [&](const Scored& scored) { grid.add(scored.parts); };
  watch.progress = progress;
  Tuned tuned;
  tuned.totals = walk(model, data, windows, memory, grid.sources, device, watch);
  tuned.points = points_of(grid, tuned.totals.tokens);
  tuned.best = *std::min_element(tuned.points.begin(), tuned.points.end(),
                                 [](const auto& a, const auto& b) { return a.loss < b.loss; });
  tuned.totals.nats = tuned.best.loss * static_cast<double>(tuned.totals.tokens);
  memory.joint_temperature = tuned.best.temperature;
  if (memory.interpolated()) memory.memory_lambda = tuned.best.memory_lambda;
  if (memory.cache > 0) {
    memory.cache_theta = tuned.best.theta;
    memory.cache_lambda = tuned.best.cache_lambda;
  }
  memory.stores.nprobe = tuned.best.nprobe;
  if (memory.stores.interpolated()) {
    memory.stores.temperature = tuned.best.store_temperature;
    memory.stores.lambda = tuned.best.store_lambda;
  }
  memory.tuned_on = short_fingerprint(data.fingerprint());
  tuned.memory = std::move(memory);
  tuned.windows = std::move(windows);
  return tuned;
}

}  // namespace infer
