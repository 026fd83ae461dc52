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

// Shares of p_joint, p_memory and p_cache, a row a combination: (L, 3) with the unused at 0.
Tensor combinations(const std::vector<double>& memory, const std::vector<double>& cache) {
  std::vector<double> rows;
  for (const double l_m : memory)
    for (const double l_c : cache)
      if (l_m + l_c < 1) rows.insert(rows.end(), {1 - l_m - l_c, l_m, l_c});
  const auto n = static_cast<std::int64_t>(rows.size()) / 3;
  return torch::tensor(rows, torch::kFloat64).view({n, 3});
}

// What a source gives at a point of its grid; joint's where it sees nothing or is not used.
Tensor probability(const Tensor& source, std::size_t point, const Tensor& joint) {
  if (!source.defined()) return joint;
  const Tensor log_prob =
      source[std::min<std::int64_t>(static_cast<std::int64_t>(point), source.size(0) - 1)];
  return torch::where(log_prob.isnan(), joint, log_prob.exp());
}

struct Grid {
  MemoryGrid sources;
  Tensor shares;  // (L, 3)
  Tensor nats;    // (n_temperatures, n_thetas, L): sums of -log p

  void add(const Parts& parts) {
    for (std::size_t t = 0; t < sources.temperatures.size(); ++t) {
      const auto joint_point =
          std::min<std::int64_t>(static_cast<std::int64_t>(t), parts.joint.size(0) - 1);
      const Tensor joint = parts.joint[joint_point].exp();
      const Tensor memory = probability(parts.memory, t, joint);
      for (std::size_t i = 0; i < sources.thetas.size(); ++i) {
        const Tensor cache = probability(parts.cache, i, joint);
        const Tensor mixture = shares.mm(torch::stack({joint, memory, cache}));  // (L, R)
        nats[static_cast<std::int64_t>(t)][static_cast<std::int64_t>(i)].sub_(
            mixture.clamp_min_(kTiny).log_().sum(1));
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
  const bool context = memory.rule().any(), cache = memory.cache > 0;
  if (!context && !cache)
    core::fail(core::Code::usage,
               "--tune: there is nothing to tune; add --memory local,long or --cache N");
  Grid grid;
  const std::vector<double> lambdas = scaled(options.lambdas, kLambdas, 1);
  grid.sources.temperatures = {memory.joint_temperature};
  grid.sources.thetas = {memory.cache_theta};
  if (context)
    grid.sources.temperatures =
        scaled(options.temperatures, kTemperatureSteps, memory.joint_temperature);
  if (cache)
    grid.sources.thetas = scaled(options.thetas, kThetaSteps,
                                 1 / std::sqrt(static_cast<double>(model.architecture->d_model())));
  const std::vector<double> none = {0};
  grid.shares = combinations(memory.interpolated() ? lambdas : none, cache ? lambdas : none);
  grid.nats =
      torch::zeros({static_cast<std::int64_t>(grid.sources.temperatures.size()),
                    static_cast<std::int64_t>(grid.sources.thetas.size()), grid.shares.size(0)},
                   torch::kFloat64);
  return grid;
}

std::vector<TunePoint> points_of(const Grid& grid, std::uint64_t tokens) {
  const auto nats = grid.nats.accessor<double, 3>();
  const auto shares = grid.shares.accessor<double, 2>();
  std::vector<TunePoint> points;
  for (std::int64_t t = 0; t < nats.size(0); ++t)
    for (std::int64_t i = 0; i < nats.size(1); ++i)
      for (std::int64_t l = 0; l < nats.size(2); ++l)
        points.push_back({grid.sources.temperatures[static_cast<std::size_t>(t)],
                          grid.sources.thetas[static_cast<std::size_t>(i)], shares[l][1],
                          shares[l][2], nats[t][i][l] / static_cast<double>(tokens)});
  return points;
}

}  // namespace

void TuneOptions::fields(core::FieldList& f) {
  f.group("Tuning");
  f("tune-temperatures", temperatures,
    "joint temperatures to try [0.5 to 3 times --joint-temperature]");
  f("tune-thetas", thetas, "thetas of the cache to try [1/8 to 8, over sqrt(width of f)]");
  f("tune-lambdas", lambdas, "shares to try [0 to 0.8]");
}

Tuned tune(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
           MemoryOptions memory, const TuneOptions& options, torch::Device device,
           const std::function<void(std::uint64_t)>& progress) {
  check_points("tune-temperatures", options.temperatures, false);
  check_points("tune-thetas", options.thetas, false);
  check_points("tune-lambdas", options.lambdas, true);
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
  memory.tuned_on = short_fingerprint(data.fingerprint());
  tuned.memory = std::move(memory);
  tuned.windows = std::move(windows);
  return tuned;
}

}  // namespace infer
