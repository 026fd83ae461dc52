#include "infer/score/samples.h"

namespace infer {
namespace {

constexpr double kLeastLeft =
    1e-9;                         // of the joint softmax; it is above the rounding errors of sums
constexpr double kTiny = 1e-300;  // keeps the logarithm of an underflowed probability finite
constexpr std::int64_t kMostCombinations = 1 << 18;

// A signature has six digits.
double quoted(double share) { return std::stod(fmt::format("{:.6g}", share)); }

// Returns exp of a source's log p, or joint where the source has no entries.
Tensor probability(const Tensor& log_prob, const Tensor& joint) {
  return torch::where(log_prob.isnan(), joint, log_prob.exp());
}

std::int64_t run_of(const std::string& kind) {
  for (const auto* const one : source_kinds())
    if (one->name() == kind) return one->facts().gate.run;
  return 1;
}

// Returns the probabilities of the sources at a point, with those weighted by bucket apart.
ShareProblem problem_of(const Components& at, const Mixture& mixture) {
  const Tensor joint = at.joint.exp();
  std::vector<Tensor> sources = {joint};
  ShareProblem problem;
  for (std::size_t i = 0; i < mixture.size(); ++i) {
    if (!mixture.by_bucket(i)) {
      sources.push_back(probability(at.separate[i], joint));
      continue;
    }
    const auto buckets = std::ssize(mixture.constants(i));
    const Tensor& bucket = at.gates.buckets.at(mixture.kind(i));
    problem.outer.push_back({at.separate[i].exp().nan_to_num(0),
        torch::where(bucket < 0, buckets, bucket), buckets, run_of(mixture.kind(i))});
  }
  problem.p = torch::stack(sources);
  return problem;
}

std::vector<double> values_at(const Grid& grid, const std::vector<std::size_t>& places) {
  return core::generated(
      places.size(), [&](std::size_t i) { return grid.axes[i].values[places[i]]; });
}

// Returns the parts with the biases of the point.
Components parts_at(const Parts& parts, MemoryPlan memory, const Grid& grid,
    const std::vector<std::size_t>& places) {
  for (const auto& axis : memory.axes())
    if (const auto i = grid.find(axis.name); !axis.bias_of.empty() && i < places.size())
      axis.set(grid.axes[i].values[places[i]]);
  return parts.at(memory, places);
}

// Returns all combinations of shares (L, sources). The joint softmax comes first; the other shares
// take the given values.
Tensor combinations(std::size_t others, const std::vector<double>& lambdas) {
  std::vector<std::vector<double>> rows = {{1}};
  for (std::size_t i = 0; i < others; ++i) {
    std::vector<std::vector<double>> more;
    for (const auto& row : rows)
      for (const double value : lambdas) {
        if (row[0] - value <= kLeastLeft) continue;
        more.push_back(row);
        more.back()[0] -= value;
        more.back().push_back(value);
      }
    rows = std::move(more);
    if (std::ssize(rows) > kMostCombinations)
      core::bad_usage("--tune: more than {} combinations of weights; give fewer --tune-lambdas",
          kMostCombinations);
  }
  std::vector<double> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return torch::tensor(flat, torch::kFloat64)
      .view({std::ssize(rows), static_cast<std::int64_t>(others) + 1});
}

// Returns the best share of each bucket. A bucket without tokens takes the share of the previous
// bucket in its run. sums is (B + 1, K).
std::vector<double> best_of_buckets(
    const Tensor& sums, const std::vector<double>& tried, std::int64_t run) {
  std::vector<double> best;
  for (std::int64_t b = 0; b + 1 < sums.size(0); ++b) {
    const bool empty = sums[b].count_nonzero().item<std::int64_t>() == 0;
    const auto k = static_cast<std::size_t>(sums[b].argmin().item<std::int64_t>());
    best.push_back(empty && b % run > 0 ? best.back() : empty ? 0 : tried[k]);
  }
  return best;
}

// Returns weights in the order of the plan from shares (joint's first) and the shares by bucket.
std::vector<std::vector<double>> in_order(const Mixture& mixture, const std::vector<double>& shares,
    const std::vector<std::vector<double>>& outer) {
  std::vector<std::vector<double>> weights;
  std::size_t next = 1, next_outer = 0;
  for (std::size_t i = 0; i < mixture.size(); ++i)
    weights.push_back(
        mixture.by_bucket(i) ? outer[next_outer++] : std::vector<double>{shares[next++]});
  return weights;
}

// Returns log p (N, 1 + S) of the rest and of each source with a gate. Where a source has no
// entries it is the joint softmax's. `rest` holds the constants of sources without a gate.
Tensor gate_log_p(const Components& at, const Mixture& mixture, const MixtureWeights& rest,
    const std::vector<std::size_t>& gated) {
  Tensor others = rest.joint.of(at.joint);
  const auto own = [&](std::size_t i) {
    return torch::where(at.separate[i].isnan(), at.joint, at.separate[i]);
  };
  for (std::size_t i = 0; i < mixture.size(); ++i)
    if (!mixture.by_bucket(i) && rest.separate[i].any())
      others = torch::logaddexp(others, rest.separate[i].of(own(i)));
  std::vector<Tensor> all = {others};
  for (const std::size_t i : gated) all.push_back(own(i));
  for (std::size_t i = 0; i < mixture.size(); ++i) {
    if (!mixture.by_bucket(i) || core::contains(gated, i)) continue;
    const Weight left{0, torch::log1p(-rest.separate[i].log_rows.exp())};
    const Tensor one =
        rest.separate[i].of(at.separate[i]).nan_to_num(-HUGE_VAL, HUGE_VAL, -HUGE_VAL);
    for (auto& source : all) source = torch::logaddexp(left.of(source), one);
  }
  return torch::stack(all, 1);
}

// Returns the weights as (R, 1) with mean 1.
Tensor weight_column(const Tensor& weight) {
  return weight.defined() ? even(weight).unsqueeze(1) : weight;
}

void take(GateRow& row, const FittedGate::Row& fitted) {
  row.bias = fitted.bias, row.weights = fitted.weights;
}

void divide(MixtureWeights& weights, double by) {
  weights.joint.constant /= by;
  for (auto& weight : weights.separate) weight.constant /= by;
}

// Fits the gate that decides whether to search: the share of a source against all others together,
// which keep their constants.
GateRow fit_search(
    const Components& at, const Mixture& mixture, std::size_t source, const Tensor& weight) {
  MixtureWeights rest = mixture.constant(at.gates);
  const double lambda = rest.separate[source].constant;
  rest.separate[source].constant = 0;
  divide(rest, 1 - lambda);
  Gate one;
  one.rows = {{"search", {lambda}, 0, {}}};
  const GateProblem problem{gate_log_p(at, mixture, rest, {source}),
      gate_offsets(one, one.rows[0], at.gates).unsqueeze(1), {at.gates.confidence},
      weight_column(weight)};
  take(one.rows[0], fit_gate(problem).rows[0]);
  return one.rows[0];
}

}  // namespace

void Samples::add(Parts parts) {
  const std::int64_t n = parts.head.size(0);
  const std::int64_t first = (stride_ - seen_ % stride_) % stride_;
  seen_ += n;
  const auto members = parts.members();
  columns_.resize(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Tensor& tensor = *members[i].tensor;
    if (!tensor.defined() || first >= n) continue;
    const Tensor rows = tensor.to(torch::kFloat64)
                            .movedim(members[i].featured ? -2 : -1, 0)
                            .reshape({n, -1})
                            .slice(0, first, n, stride_)
                            .contiguous();
    columns_[i].width = rows.size(1);
    const auto* const from = rows.const_data_ptr<double>();
    columns_[i].values.insert(columns_[i].values.end(), from, from + rows.numel());
  }
  if (first < n) kept_ += (n - first + stride_ - 1) / stride_;
  shape_ = std::move(parts);
  const auto width = core::sum_of(columns_, &Column::width);
  while (kept_ * width * static_cast<std::int64_t>(sizeof(double)) > most_bytes_ && kept_ > 1)
    thin();
}

// Keeps every second sample.
void Samples::thin() {
  const std::int64_t half = (kept_ + 1) / 2;
  for (auto& [width, values] : columns_) {
    if (values.empty()) continue;
    for (std::int64_t i = 0; i < half; ++i)
      std::copy_n(values.begin() + 2 * i * width, width, values.begin() + i * width);
    values.resize(static_cast<std::size_t>(half * width));
  }
  kept_ = half;
  stride_ *= 2;
}

Parts Samples::parts() const {
  Parts parts = shape_;
  for (auto& source : parts.sources) source.found = nullptr;
  const auto members = parts.members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    Tensor& tensor = *members[i].tensor;
    if (!tensor.defined()) continue;
    const std::int64_t rows = members[i].featured ? -2 : -1;
    auto sizes = tensor.movedim(rows, 0).sizes().vec();
    sizes[0] = kept_;
    const auto dtype = tensor.scalar_type();
    tensor = torch::from_blob(
        const_cast<double*>(columns_[i].values.data()), {kept_, columns_[i].width}, torch::kFloat64)
                 .view(sizes)
                 .movedim(0, rows)
                 .contiguous()
                 .to(dtype)
                 .clone();
  }
  return parts;
}

std::vector<TunePoint> fit_points(
    const Parts& parts, const MemoryPlan& memory, const Grid& grid, const GridPoints& asked) {
  const Mixture mixture(memory);
  std::vector<TunePoint> points;
  FittedShares best;  // of the previous point, as a start
  for (const auto& places : asked) {
    ShareProblem problem = problem_of(parts_at(parts, memory, grid, places), mixture);
    problem.weight = even(parts.weight);
    best = fit_shares(problem, best);
    FittedShares said = best;
    double rest = 1;
    for (std::size_t k = 1; k < said.shares.size(); ++k)
      rest -= said.shares[k] = quoted(said.shares[k]);
    said.shares[0] = rest;
    for (auto& shares : said.outer)
      for (double& share : shares) share = quoted(share);
    points.push_back({values_at(grid, places), places, in_order(mixture, said.shares, said.outer),
        share_loss(problem, said)});
  }
  return points;
}

std::vector<TunePoint> try_points(const Parts& parts, const MemoryPlan& memory, const Grid& grid,
    const std::vector<double>& lambdas, const GridPoints& asked) {
  const Mixture mixture(memory);
  std::size_t inner = 0;
  for (std::size_t i = 0; i < mixture.size(); ++i) inner += !mixture.by_bucket(i);
  const Tensor shares = combinations(inner, lambdas);
  std::vector<TunePoint> points;
  const Tensor weight = even(parts.weight);
  const auto log_of = [&](const Tensor& mixed) {
    return weighted(mixed.clamp_min(kTiny).log(), weight);
  };
  for (const auto& places : asked) {
    const ShareProblem problem = problem_of(parts_at(parts, memory, grid, places), mixture);
    const auto tokens = static_cast<double>(problem.p.size(1));
    for (std::int64_t l = 0; l < shares.size(0); ++l) {
      Tensor mixed = shares[l].unsqueeze(0).mm(problem.p).squeeze(0);
      std::vector<std::vector<double>> outer;
      for (const auto& source : problem.outer) {  // the best of a bucket is independent of others
        const Tensor sums =
            torch::zeros({source.buckets + 1, std::ssize(lambdas)}, torch::kFloat64);
        for (std::size_t k = 0; k < lambdas.size(); ++k) {
          const std::vector<double> all(static_cast<std::size_t>(source.buckets), lambdas[k]);
          sums.select(1, static_cast<std::int64_t>(k))
              .index_add_(0, source.bucket, log_of(source.mixed(mixed, all)), /*alpha=*/-1);
        }
        outer.push_back(best_of_buckets(sums, lambdas, source.run));
        mixed = source.mixed(mixed, outer.back());
      }
      const double nats = -log_of(mixed).sum().item<double>();
      const Tensor row = shares[l].contiguous();
      const auto* const begin = row.const_data_ptr<double>();
      points.push_back({values_at(grid, places), places,
          in_order(mixture, {begin, begin + row.size(0)}, outer), nats / tokens});
    }
  }
  return points;
}

GatesFitted fit_gates(
    const Parts& parts, const MemoryPlan& plan, const std::vector<std::size_t>& places) {
  const Components at = parts.at(plan, places);
  const Mixture mixture(plan);
  GatesFitted fitted;
  Gate& gate = fitted.gate;
  MixtureWeights rest = mixture.constant(at.gates);
  std::vector<std::size_t> gated;
  std::optional<std::size_t> searched;
  for (std::size_t i = 0; i < mixture.size(); ++i) {
    if (!mixture.gated(i)) continue;
    gated.push_back(i);
    gate.rows.push_back({mixture.kind(i), mixture.constants(i), 0, {}});
    if (!mixture.by_bucket(i)) rest.separate[i].constant = 0;
    for (const auto* const kind : gate_kinds())
      if (kind->name() == mixture.kind(i) && kind->facts().gate.searched) searched = i;
  }
  divide(rest, 1 - gate.inner());
  GateProblem problem;
  problem.log_p = gate_log_p(at, mixture, rest, gated);
  std::vector<Tensor> offsets;
  for (const auto& row : gate.rows) {
    offsets.push_back(gate_offsets(gate, row, at.gates));
    problem.features.push_back(gate_features(row, at.gates));
  }
  problem.offsets = torch::stack(offsets, 1);
  problem.weight = weight_column(parts.weight);
  const FittedGate best = fit_gate(problem);
  for (std::size_t i = 0; i < gate.rows.size(); ++i) take(gate.rows[i], best.rows[i]);
  if (searched) gate.search = fit_search(at, mixture, *searched, parts.weight);
  fitted.constant_loss = best.constant_loss;
  fitted.loss = best.loss;
  return fitted;
}

}  // namespace infer
