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
#include "model/test_temperature.h"

namespace infer {
namespace {

using torch::Tensor;

// What --joint-temperature and its like take.
constexpr double kMostTuned = 1e6;
// Nats a token: by as much a pass over what is beyond an edge must be better, to be taken and to be
// followed by another.
constexpr double kWorthAPass = 1e-4;

// To four digits: a signature quotes them.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

// The points that were given; or the steps, in this unit.
std::vector<double> scaled(std::vector<double> given, const std::vector<double>& steps,
                           double unit) {
  if (given.empty())
    for (const double step : steps)
      given.push_back(std::max(rounded(step * unit), model::kLeastTemperature));
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

// Which values of a point give anything: those of a share of 0 do not.
struct Matters {
  bool temperature, theta, store_temperature;
  Matters(const TunePoint& best, const MemoryPlan& memory)
      : temperature(memory.stores.joined() || !memory.interpolated() || best.memory_lambda > 0),
        theta(best.cache_lambda > 0),
        store_temperature(best.store_lambda > 0) {}
};

// Values of the best point at the edge of what was tried; of shares where they were of a list.
std::vector<std::string> edges_of(const Tuned& tuned, const TuneOptions& options) {
  std::vector<std::string> edges;
  const TunePoint& best = tuned.best;
  const auto& points = tuned.points;
  const auto look = [&](const char* flag, auto value) {
    const auto less = [&](const auto& a, const auto& b) { return value(a) < value(b); };
    const auto [least, most] = std::minmax_element(points.begin(), points.end(), less);
    const double chosen = value(best), low = value(*least), high = value(*most);
    if (low < high && chosen != 0 && (chosen == low || chosen == high))
      edges.push_back(fmt::format("--{} {}", flag, chosen));
  };
  const Matters matters(best, tuned.memory);
  if (matters.temperature) look("tune-temperatures", std::mem_fn(&TunePoint::temperature));
  if (matters.theta) look("tune-thetas", std::mem_fn(&TunePoint::theta));
  if (matters.store_temperature)
    look("tune-datastore-temperatures", std::mem_fn(&TunePoint::store_temperature));
  if (options.lambdas.empty()) return edges;
  for (const auto share :
       {&TunePoint::memory_lambda, &TunePoint::cache_lambda, &TunePoint::store_lambda})
    look("tune-lambdas", std::mem_fn(share));
  for (std::size_t i = 0; i < best.with_lambdas.size(); ++i)
    look("tune-lambdas", [i](const TunePoint& point) { return point.with_lambdas[i]; });
  return edges;
}

// Of values in their order with the best at an edge: the two there and four beyond, as far apart as
// these two, but 1.3 to 2 times. False where it is at none, or nothing is beyond.
bool go_beyond(std::vector<double>& values, double chosen) {
  if (values.size() < 2 || (chosen != values.front() && chosen != values.back())) return false;
  const bool down = chosen == values.front();
  const double first = down ? values[1] : values[values.size() - 2];
  const double step = std::clamp(down ? first / chosen : chosen / first, 1.3, 2.0);
  std::vector<double> next = {first, chosen};
  for (int i = 0; i < 4; ++i) next.push_back(rounded(next.back() * (down ? 1 / step : step)));
  std::erase_if(
      next, [](double value) { return value > kMostTuned || value < model::kLeastTemperature; });
  if (down) std::reverse(next.begin(), next.end());
  values = std::move(next);
  return values.size() > 2;
}

// The same of each value that gives anything and whose points were not given.
bool go_beyond(MemoryGrid& grid, const Tuned& tuned, const TuneOptions& options) {
  const TunePoint& best = tuned.best;
  const Matters matters(best, tuned.memory);
  bool any = false;
  if (options.temperatures.empty() && matters.temperature)
    any |= go_beyond(grid.temperatures, best.temperature);
  if (options.thetas.empty() && matters.theta) any |= go_beyond(grid.thetas, best.theta);
  if (options.store_temperatures.empty() && matters.store_temperature)
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
              const WindowPlan& windows, const MemoryPlan& memory, const TuneOptions& options,
              torch::Device device, const std::function<void(std::uint64_t)>& progress) {
  const auto search = make_search(memory, grid, options.lambdas);
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
  tuned.tried = tuned.points.size();
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
  tuned.edges = edges_of(tuned, options);
  return tuned;
}

}  // namespace

void TuneOptions::fields(core::FieldList& f) {
  const auto in_tuning = f.group("Tuning");
  f("tune", data, "validation shard: choose temperatures, thetas and shares on it");
  f("tune-output", output, "write what was chosen to this file, for --config");
  f("tune-temperatures", temperatures,
    "joint temperatures to try [0.5 to 3 times --joint-temperature]")
      .at_least(model::kLeastTemperature)
      .at_most(kMostTuned);
  f("tune-thetas", thetas, "thetas of the cache to try [1/8 to 8, over sqrt(width of f)]")
      .above(0)
      .at_most(kMostTuned);
  f("tune-lambdas", lambdas, "shares to try, every combination [the best of all]")
      .at_least(0)
      .below(1);
  f("tune-datastore-temperatures", store_temperatures,
    "temperatures of the stores' own distribution to try [1, "
    "and 1/80 to 4 times --datastore-temperature]")
      .at_least(model::kLeastTemperature)
      .at_most(kMostTuned);
  f("tune-nprobes", nprobes, "numbers of lists to try, a search each [--nprobe]").between(1, 1e6);
}

void TuneOptions::check(const std::vector<std::string>& files) const {
  if (!output.empty() && data.empty())
    core::fail(core::Code::usage, "--tune-output: there is no --tune");
  if (data == "-" && std::find(files.begin(), files.end(), "-") != files.end())
    core::fail(core::Code::usage, "--tune: two inputs are -; stdin can be read only once");
}

std::string Tuned::summary() const {
  auto text = fmt::format("perplexity {:.4f}, the best of {} points", std::exp(best.loss), tried);
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
  const auto pass = [&] {
    return tune_on(grid, model, data, windows, memory, options, device, progress);
  };
  Tuned tuned = pass();
  for (int turn = 1; turn < kTuneTurns && go_beyond(grid, tuned, options); ++turn) {
    Tuned beyond = pass();
    beyond.tried += tuned.tried;
    if (beyond.best.loss > tuned.best.loss - kWorthAPass) {
      // Nothing is there, unless farther still.
      tuned.tried = beyond.tried;
      tuned.edges = beyond.edges;
      break;
    }
    tuned = std::move(beyond);
  }
  return tuned;
}

}  // namespace infer
