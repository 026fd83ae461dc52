#include "infer/score/tune.h"

#include "infer/sources/plan_axes.h"

namespace infer {
namespace {

// Nats per token. A pass beyond an edge must improve by this much to be taken and to be followed by
// another.
constexpr double kWorthAPass = 1e-4;

std::string flag_of(const std::string& axis) {
  for (const auto* const kind : source_kinds())
    for (const auto& facts : kind->axis_facts())
      if (facts.name == axis) return "--tune-" + facts.flag;
  return {};
}

constexpr const char* kShared = "temperature";  // the axis of sources without their own temperature

// Returns how many distributions of their own share that axis.
std::ptrdiff_t separate(const MemoryPlan& memory) {
  return std::ranges::count_if(memory.weights(), &PlanWeight::tempered);
}

// Whether each part of the joint softmax gets its own temperature: several sources share one
// temperature whose points are not given.
bool tempers_apart(const MemoryPlan& memory, const TuneOptions& options) {
  return options.of(kShared).empty() && std::ssize(memory.joint()) + separate(memory) > 1;
}

// Returns the values given for an axis; empty: none.
std::vector<double> given_of(const PlanAxis& axis, const TuneOptions& options) {
  return options.of(axis.listed());
}

// Whether a bias is searched: its axis begins with one point, and the search adds others.
bool is_open(const PlanAxis& axis, const TuneOptions& options) {
  return !axis.bias_of.empty() && options.of(kShared).empty() && given_of(axis, options).empty();
}

Grid make_grid(MemoryPlan memory, const TuneOptions& options) {
  if (!memory.any())
    core::bad_usage(
        "--tune: nothing to tune; add {}", flags_of_kinds([](const auto&) { return true; }));
  expect_used(core::changed(options), [&](const SourceKind& kind) { return kind.any(memory); });
  const bool apart = tempers_apart(memory, options);
  Grid grid;
  for (const auto& axis : memory.axes()) {
    auto values = given_of(axis, options);
    const bool bias = !axis.bias_of.empty(), own = !axis.temperature_of.empty(),
               alike = axis.name == kShared && separate(memory) == 0;
    if (memory.gates.any() && axis.steps.empty() && !bias && values.size() > 1)
      core::bad_usage("{}: with gates it takes one", flag_of(axis.listed()));
    if (values.empty() && (bias ? !is_open(axis, options) : own && !apart)) continue;
    if (bias && !values.empty()) values.push_back(-HUGE_VAL);
    if (values.empty() && !(alike && apart)) values = axis.steps;
    if (values.empty()) values = {axis.get()};
    grid.axes.push_back({axis.name, std::move(values)});
  }
  return grid;
}

// Returns the values of the best point that are at an edge of the grid. Shares count if they were
// given as a list.
std::vector<std::string> edges_of(const Tuned& tuned, const TuneOptions& options) {
  std::vector<std::string> edges;
  const auto& points = tuned.points;
  const auto look = [&](const std::string& flag, auto value) {
    const auto [least, most] = std::ranges::minmax_element(points, {}, value);
    const double chosen = value(tuned.best), low = value(*least), high = value(*most);
    if (low < high && chosen != 0 && (chosen == low || chosen == high))
      edges.push_back(fmt::format("{} {}", flag, chosen));
  };
  MemoryPlan memory = tuned.memory;
  for (const auto& axis : memory.axes())
    if (axis.matters && !axis.steps.empty())
      look(
          flag_of(axis.listed()), [&](const auto& point) { return tuned.value(point, axis.name); });
  if (options.lambdas.empty()) return edges;
  const auto weights = memory.weights();
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!weights[i].by_bucket())
      look("--tune-lambdas", [i](const TunePoint& point) { return point.weights[i][0]; });
  return edges;
}

// If the best of the ordered values is at an edge, replaces them by the two values at that edge and
// four beyond. Their ratio is that of the two values, limited to 1.3 to 2. Returns false if the
// best value is at no edge or no value beyond is allowed.
bool go_beyond(std::vector<double>& values, double chosen) {
  if (values.size() < 2 || (chosen != values.front() && chosen != values.back())) return false;
  const bool down = chosen == values.front();
  const double first = down ? values[1] : values[values.size() - 2];
  const double step = std::clamp(down ? first / chosen : chosen / first, 1.3, 2.0);
  std::vector<double> next = {first, chosen};
  for (int i = 0; i < 4; ++i)
    next.push_back(rounded_to_sign(next.back() * (down ? 1 / step : step)));
  std::erase_if(
      next, [](double value) { return value > kMostTuned || value < model::kLeastTemperature; });
  if (down) std::reverse(next.begin(), next.end());
  values = std::move(next);
  return values.size() > 2;
}

// Does this for each axis of an active source whose points were not given.
bool go_beyond(Grid& grid, const Tuned& tuned, const TuneOptions& options) {
  MemoryPlan memory = tuned.memory;
  bool any = false;
  for (const auto& axis : memory.axes())
    if (const auto i = grid.find(axis.name); i < grid.axes.size() && axis.matters &&
                                             !axis.steps.empty() && given_of(axis, options).empty())
      any |= go_beyond(grid.axes[i].values, tuned.value(tuned.best, axis.name));
  return any;
}

// Fits the gates at the best point.
void fit_gates_of(Tuned& tuned, const Parts& parts) {
  const auto fitted = fit_gates(parts, tuned.memory, tuned.best.places);
  tuned.memory.gates.gate = fitted.gate;
  tuned.gates = {fitted.constant_loss, fitted.loss};
  tuned.totals.nats = fitted.loss * static_cast<double>(tuned.totals.tokens);
}

// Finds the best point from the results of one pass. The axes of the joint softmax are searched
// part by part, each with the others at their best: all combinations would be too many. So are axes
// that are tried alone.
class PointSearch {
 public:
  PointSearch(const Parts& parts, const MemoryPlan& memory, Grid grid, const TuneOptions& options)
      : parts_(parts), memory_(memory), grid_(std::move(grid)), options_(options) {
    const bool apart = tempers_apart(memory, options);
    MemoryPlan plan = memory;
    const auto axes = plan.axes();  // of this copy
    for (const auto& axis : axes)
      if (const auto i = grid_.find(axis.name); axis.alone && i < grid_.axes.size())
        alone_.push_back({i, nearest(grid_.axes[i].values, axis.get())});
    for (const auto* const part : memory.joint()) {
      Part own;
      own.bias = grid_.axes.size();
      for (const auto& axis : axes) {
        const auto i = grid_.find(axis.name);
        if (i == grid_.axes.size()) continue;
        if (axis.bias_of == part->name) own.bias = i, own.open = is_open(axis, options);
        if (axis.bias_of == part->name && own.open) grid_.axes[i].values = {part->bias};
        if (apart ? axis.temperature_of == part->name : axis.name == kShared) {
          own.tempered = i;
          const double now = apart ? memory.temperature_of(*part) : axis.get();
          own.start = nearest(grid_.axes[i].values, now);
        }
      }
      if (own.bias < grid_.axes.size()) joint_.push_back(own);
    }
  }

  std::vector<TunePoint> run() {
    try_all(product());
    if (!joint_.empty()) try_one_by_one();
    const int rounds = joint_.empty() && alone_.empty() ? 0 : kRounds;
    for (int round = 0; round < rounds; ++round) {
      const double before = points_[best_].loss;
      for (const Part& part : joint_) try_part(part);
      for (std::size_t i = 0; i < grid_.axes.size(); ++i)
        if (!of_joint(i)) try_all(along(points_[best_].places, i));
      if (points_[best_].loss > before - kWorthAPass) break;
    }
    return std::move(points_);
  }

 private:
  struct Part {
    std::size_t bias = 0, tempered = 0;  // indices of axes
    std::size_t start = 0;               // index of its temperature
    bool open = false;                   // whether any bias is searched
  };
  static constexpr int kRounds = 4;
  static constexpr double kFirstStep = 2, kLastStep = 0.25, kWorthAStep = 1e-6;  // of a bias

  static std::size_t nearest(const std::vector<double>& values, double to) {
    const auto less = [&](double a, double b) { return std::abs(a - to) < std::abs(b - to); };
    return static_cast<std::size_t>(std::ranges::min_element(values, less) - values.begin());
  }

  bool of_joint(std::size_t axis) const {
    return std::any_of(joint_.begin(), joint_.end(),
        [&](const Part& part) { return axis == part.bias || axis == part.tempered; });
  }

  // Returns all combinations of the axes that are neither of the joint softmax nor tried alone. The
  // others have the plan's values.
  GridPoints product() const {
    Grid free = grid_;
    for (std::size_t i = 0; i < free.axes.size(); ++i)
      if (of_joint(i)) free.axes[i].values.resize(1);
    for (const auto& [axis, start] : alone_) free.axes[axis].values.resize(1);
    GridPoints all;
    for (std::size_t point = 0; point < free.size(); ++point) {
      all.push_back(free.at(point));
      for (const Part& part : joint_) all.back()[part.tempered] = part.start;
      for (const auto& [axis, start] : alone_) all.back()[axis] = start;
    }
    return all;
  }

  // Returns the least loss of these points. Points already tried are not computed again.
  double try_all(const GridPoints& places) {
    double least = HUGE_VAL;
    GridPoints fresh;
    for (const auto& place : places) {
      const auto known = losses_.find(place);
      if (known == losses_.end()) fresh.push_back(place);
      else least = std::min(least, known->second);
    }
    if (fresh.empty()) return least;
    const bool fits = options_.lambdas.empty() && !memory_.weights().empty();
    const auto tried = fits ? fit_points(parts_, memory_, grid_, fresh)
                            : try_points(parts_, memory_, grid_, options_.lambdas, fresh);
    for (const auto& point : tried) {
      least = std::min(least, point.loss);
      const auto [known, first] = losses_.emplace(point.places, point.loss);
      if (!first) known->second = std::min(known->second, point.loss);
      points_.push_back(point);
      if (point.loss < points_[best_].loss) best_ = points_.size() - 1;
    }
    return least;
  }

  static std::vector<std::size_t> moved(
      std::vector<std::size_t> places, std::size_t axis, std::size_t place) {
    places[axis] = place;
    return places;
  }

  // Returns the points with all other values of an axis.
  GridPoints along(const std::vector<std::size_t>& from, std::size_t axis) const {
    GridPoints all;
    for (std::size_t k = 0; k < grid_.axes[axis].values.size(); ++k)
      if (k != from[axis]) all.push_back(moved(from, axis, k));
    return all;
  }

  // Begins without any part and adds each: beside a part with too much weight no other part helps.
  void try_one_by_one() {
    const std::size_t whole = best_;
    auto none = points_[best_].places;
    for (const Part& part : joint_) none[part.bias] = place_of(part.bias, -HUGE_VAL);
    best_ = points_.size();
    try_all({none});
    for (const Part& part : joint_) try_part(part);
    if (points_[whole].loss <= points_[best_].loss) best_ = whole;
  }

  // Finds the best bias at each temperature of a part, and tries the point without the part.
  void try_part(const Part& part) {
    const auto from = points_[best_].places;
    GridPoints starts = along(from, part.tempered);
    starts.push_back(from);
    for (const auto& start : starts) {
      if (part.open) {
        climb(start, part.bias);
        continue;
      }
      try_all({start});
      try_all(along(start, part.bias));
    }
    if (part.open)
      try_all({moved(points_[best_].places, part.bias, place_of(part.bias, -HUGE_VAL))});
  }

  // Searches from the bias of a point in the direction that improves.
  void climb(const std::vector<std::size_t>& from, std::size_t axis) {
    const auto loss_at = [&](double bias) {
      return std::abs(bias) > kMostBias ? HUGE_VAL
                                        : try_all({moved(from, axis, place_of(axis, bias))});
    };
    const double own = grid_.axes[axis].values[from[axis]];
    double bias = std::isfinite(own) ? own : 0, loss = loss_at(bias);
    for (double step = kFirstStep; step >= kLastStep;) {
      const double lower = loss_at(bias - step), upper = loss_at(bias + step);
      if (std::min(lower, upper) < loss - kWorthAStep) {
        bias += lower < upper ? -step : step;
        loss = std::min(lower, upper);
        step *= 2;
      } else {
        step /= 2;
      }
    }
  }

  // Returns the index of a value, which may be new.
  std::size_t place_of(std::size_t axis, double value) {
    auto& values = grid_.axes[axis].values;
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return static_cast<std::size_t>(found - values.begin());
    values.push_back(value);
    return values.size() - 1;
  }

  const Parts& parts_;
  const MemoryPlan& memory_;
  Grid grid_;
  const TuneOptions& options_;
  std::vector<Part> joint_;
  std::vector<std::pair<std::size_t, std::size_t>> alone_;  // an axis, and the index of its start
  std::vector<TunePoint> points_;
  std::map<std::vector<std::size_t>, double> losses_;  // least loss of each point
  std::size_t best_ = 0;
};

// Returns the best point of a grid from one pass of the model.
Tuned tune_on(const Grid& grid, nn::Model& model, const shard::Dataset& data,
    const WindowPlan& windows, const MemoryPlan& memory, const TuneOptions& options,
    torch::Device device, const std::function<void(std::uint64_t)>& progress) {
  Callbacks watch;
  Samples samples;
  watch.scored = [&](const Scored& scored) { samples.add(scored.parts); };
  watch.progress = progress;
  Tuned tuned;
  MemoryPlan searched = memory;
  searched.gates.threshold = 0;
  tuned.totals = walk(model, data, windows, searched, grid, device, watch);
  const Parts parts = samples.parts();
  for (const auto& axis : grid.axes) tuned.axes.push_back(axis.name);
  tuned.points = PointSearch(parts, memory, grid, options).run();
  tuned.best = *std::ranges::min_element(tuned.points, {}, &TunePoint::loss);
  if (!std::isfinite(tuned.best.loss))
    core::bad_data("{}: the loss is not finite; the model's weights may be damaged", data.name());
  tuned.tried = tuned.points.size();
  tuned.totals.nats = tuned.best.loss * static_cast<double>(tuned.totals.tokens);
  tuned.memory = tuned.at(tuned.best, memory);
  if (memory.gates.any()) fit_gates_of(tuned, parts);
  tuned.memory.online = memory.online && memory.online_asked;
  tuned.memory.tuned_on = short_fingerprint(data.fingerprint());
  tuned.edges = edges_of(tuned, options);
  return tuned;
}

}  // namespace

void TuneOptions::fields(core::FieldList& f) {
  const auto in_tuning = f.group("Tuning");
  f("tune", data,
      "validation shard on which temperatures, thetas and interpolation weights are tuned");
  f.rest_needs("tune");
  f("tune-output", output, "file for the tuned values, for --config");
  for (const auto* const kind : source_kinds())
    for (const auto& axis : kind->axis_facts()) {
      const std::string flag = "tune-" + axis.flag;
      core::Field& field =
          axis.whole ? f(flag, whole[axis.name], axis.help) : f(flag, points[axis.name], axis.help);
      (axis.least == 0 ? field.above(0) : field.at_least(axis.least)).at_most(axis.most);
    }
  f("tune-lambdas", lambdas,
      "interpolation weights to try, in every combination [the exact optimum]")
      .fraction();
}

std::vector<double> TuneOptions::of(const std::string& axis) const {
  if (const auto given = points.find(axis); given != points.end()) return given->second;
  const auto given = whole.find(axis);
  return given == whole.end() ? std::vector<double>{}
                              : std::vector<double>(given->second.begin(), given->second.end());
}

void TuneOptions::check(const std::vector<std::string>& files) const {
  if (data == "-" && std::find(files.begin(), files.end(), "-") != files.end())
    core::bad_usage("--tune: two inputs are -, but stdin can be read only once");
}

double Tuned::value(const TunePoint& point, const std::string& axis) const {
  const auto at = std::find(axes.begin(), axes.end(), axis);
  if (at != axes.end()) return point.values[static_cast<std::size_t>(at - axes.begin())];
  MemoryPlan plan = memory;
  for (const auto& own : plan.axes())
    if (own.name == axis) return own.get();
  return NAN;
}

MemoryPlan Tuned::at(const TunePoint& point, MemoryPlan plan) const {
  for (const auto& axis : plan.axes())
    if (const auto i = std::find(axes.begin(), axes.end(), axis.name); i != axes.end())
      axis.set(point.values[static_cast<std::size_t>(i - axes.begin())]);
  const auto weights = plan.weights();
  for (std::size_t i = 0; i < weights.size(); ++i)
    std::copy(point.weights[i].begin(), point.weights[i].end(), weights[i].values.begin());
  return plan;
}

std::string Tuned::summary() const {
  auto text = fmt::format("perplexity {:.4f}, the best of {} settings", std::exp(best.loss), tried);
  if (gates)
    text += fmt::format("; with gates {:.4f}, on tokens with {:.4f} without gates",
        std::exp(gates->second), std::exp(gates->first));
  if (memory.gates.skips())
    text += fmt::format(
        "; with all searches, without --datastore-threshold {}", memory.gates.threshold);
  if (edges.empty()) return text;
  return fmt::format("{}; a better value may lie beyond {}, the edge of the tried range", text,
      fmt::join(edges, ", "));
}

Tuned tune(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
    const MemoryPlan& memory, const TuneOptions& options, torch::Device device,
    const std::function<void(std::uint64_t)>& progress) {
  Grid grid = make_grid(memory, options);
  const auto pass = [&](const MemoryPlan& from) {
    return tune_on(grid, model, data, windows, from, options, device, progress);
  };
  Tuned tuned = pass(memory);
  for (int turn = 1; turn < kTuneTurns && go_beyond(grid, tuned, options); ++turn) {
    Tuned beyond = pass(tuned.at(tuned.best, memory));
    beyond.tried += tuned.tried;
    if (beyond.best.loss > tuned.best.loss - kWorthAPass) {
      // There is no improvement, unless even farther away.
      tuned.tried = beyond.tried;
      tuned.edges = beyond.edges;
      break;
    }
    tuned = std::move(beyond);
  }
  return tuned;
}

}  // namespace infer
