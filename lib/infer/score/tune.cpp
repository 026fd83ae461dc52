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

// To four digits: a signature quotes them.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

// The points that were given; or the steps, in this unit.
std::vector<double> scaled(std::vector<double> given, const std::vector<double>& steps,
                           double unit) {
  if (given.empty())
    for (const double step : steps) given.push_back(rounded(step * unit));
  return given;
}

MemoryGrid make_grid(const MemoryPlan& memory, const TuneOptions& options, const nn::Model& model) {
  const StorePlan& stores = memory.stores;
  const bool context = memory.rule.any(), cache = memory.cache > 0;
  if (!context && !cache && !stores.any() && !memory.ngrams.any() && !memory.with.any())
    core::fail(core::Code::usage,
               "--tune: there is nothing to tune; add --memory local,long, --cache N, "
               "--datastore STORE, --ngrams FOLDER or --with MODEL");
  if (memory.gates.any() && options.nprobes.size() > 1)
    core::fail(core::Code::usage, "--tune-nprobes: with gates it takes one");
  MemoryGrid grid;
  grid.fill(memory);
  if (stores.any() && !options.nprobes.empty()) grid.nprobes = options.nprobes;
  if (stores.interpolated()) {
    auto& points = grid.store_temperatures;
    points = scaled(options.store_temperatures, kStoreTemperatureSteps, stores.temperature);
    if (options.store_temperatures.empty() && std::count(points.begin(), points.end(), 1) == 0)
      points.insert(std::upper_bound(points.begin(), points.end(), 1), 1);
  }
  if (context || stores.joined())
    grid.temperatures = scaled(options.temperatures, kTemperatureSteps, memory.rule.temperature);
  if (cache)
    grid.thetas = scaled(options.thetas, kThetaSteps,
                         1 / std::sqrt(static_cast<double>(model.architecture->d_model())));
  return grid;
}

std::unique_ptr<ShareSearch> make_search(const MemoryPlan& memory, const MemoryGrid& grid,
                                         const std::vector<double>& lambdas) {
  const bool shared = memory.interpolated() || memory.cache > 0 || memory.stores.interpolated() ||
                      memory.ngrams.any() || memory.with.any();
  return shared && lambdas.empty() ? search_all_shares(memory, grid)
                                   : search_lambdas(memory, grid, lambdas);
}

// Values of the best point at the edge of what was tried; of shares where they were of a list.
std::vector<std::string> edges_of(const TunePoint& best, const std::vector<TunePoint>& points,
                                  bool listed) {
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
  if (!listed) return edges;
  for (const auto share :
       {&TunePoint::memory_lambda, &TunePoint::cache_lambda, &TunePoint::store_lambda})
    look("tune-lambdas", std::mem_fn(share), 0);
  for (std::size_t i = 0; i < best.with_lambdas.size(); ++i)
    look(
        "tune-lambdas", [i](const TunePoint& point) { return point.with_lambdas[i]; }, 0);
  return edges;
}

// Of values in their order with the best at an edge: the two there and four beyond, as far apart as
// these two and at least by 1.3. False where it is at none.
bool go_beyond(std::vector<double>& values, double chosen) {
  if (values.size() < 2 || (chosen != values.front() && chosen != values.back())) return false;
  const bool down = chosen == values.front();
  if (down) std::reverse(values.begin(), values.end());
  values.erase(values.begin(), values.end() - 2);
  const double apart = std::max(values[1] / values[0], values[0] / values[1]);
  const double step = std::max(apart, 1.3);
  for (int i = 0; i < 4; ++i)
    values.push_back(rounded(down ? values.back() / step : values.back() * step));
  if (down) std::reverse(values.begin(), values.end());
  return true;
}

// The same of each value whose points were not given, and which gives anything at all.
bool go_beyond(MemoryGrid& grid, const TunePoint& best, const TuneOptions& options) {
  bool any = options.temperatures.empty() && go_beyond(grid.temperatures, best.temperature);
  if (options.thetas.empty() && best.cache_lambda > 0) any |= go_beyond(grid.thetas, best.theta);
  if (options.store_temperatures.empty() && best.store_lambda > 0)
    any |= go_beyond(grid.store_temperatures, best.store_temperature);
  return any;
}

std::int64_t place_of(const std::vector<double>& values, double value) {
  return std::find(values.begin(), values.end(), value) - values.begin();
}

// The gates, at the best point.
void fit_gates_of(Tuned& tuned, const MemoryGrid& grid, const GateSamples& samples) {
  const TunePoint& best = tuned.best;
  const auto fitted = fit_gates(
      samples.at(place_of(grid.temperatures, best.temperature), place_of(grid.thetas, best.theta),
                 place_of(grid.store_temperatures, best.store_temperature)),
      tuned.memory);
  tuned.memory.gates.gate = fitted.gate;
  tuned.gates = {fitted.constant_loss, fitted.loss};
  tuned.totals.nats = fitted.loss * static_cast<double>(tuned.totals.tokens);
}

// The best of a grid, in one pass of the model.
Tuned tune_on(const MemoryGrid& grid, nn::Model& model, const shard::Dataset& data,
              const WindowPlan& windows, const MemoryPlan& memory,
              const std::vector<double>& lambdas, torch::Device device,
              const std::function<void(std::uint64_t)>& progress) {
  const auto search = make_search(memory, grid, lambdas);
  Watch watch;
  GateSamples samples;
  watch.scored = [&](const Scored& scored) {
    search->add(scored.parts);
    if (memory.gates.any()) samples.add(scored.parts);
  };
  watch.progress = progress;
  Tuned tuned;
  MemoryPlan searched = memory;
  searched.gates.threshold = 0;
  tuned.totals = walk(model, data, windows, searched, grid, device, watch);
  tuned.points = search->points(tuned.totals.tokens);
  const auto chosen =
      std::min_element(tuned.points.begin(), tuned.points.end(),
                       [](const auto& a, const auto& b) { return a.loss < b.loss; });
  tuned.best = *chosen;
  if (!std::isfinite(tuned.best.loss))
    core::fail(core::Code::bad_data,
               "{}: the loss is not finite; the model's weights may be damaged", data.name());
  tuned.edges = edges_of(tuned.best, tuned.points, !lambdas.empty());
  tuned.totals.nats = tuned.best.loss * static_cast<double>(tuned.totals.tokens);
  tuned.memory = memory;
  if (memory.ngrams.any())
    tuned.memory.ngrams.lambda =
        search->ngram_lambdas(static_cast<std::size_t>(chosen - tuned.points.begin()));
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
  if (memory.gates.any()) fit_gates_of(tuned, grid, samples);
  tuned.memory.tuned_on = short_fingerprint(data.fingerprint());
  return tuned;
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
  f("tune-lambdas", lambdas, "shares to try, every combination [the best of all]")
      .at_least(0)
      .below(1);
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
  if (memory.gates.skips())
    text += fmt::format("; with every search, without --datastore-threshold {}",
                        memory.gates.threshold);
  if (edges.empty()) return text;
  return fmt::format("{}; a better one may lie beyond {}, at the edge of what was tried", text,
                     fmt::join(edges, ", "));
}

Tuned tune(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
           const MemoryPlan& memory, const TuneOptions& options, torch::Device device,
           const std::function<void(std::uint64_t)>& progress) {
  MemoryGrid grid = make_grid(memory, options, model);
  for (int turn = 1;; ++turn) {
    auto tuned = tune_on(grid, model, data, windows, memory, options.lambdas, device, progress);
    if (turn == kTuneTurns || !go_beyond(grid, tuned.best, options)) return tuned;
  }
}

}  // namespace infer
