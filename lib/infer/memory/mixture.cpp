#include "infer/memory/mixture.h"

namespace infer {
namespace {

// Returns (R) bool: the rows in which a source has entries. log_prob is (R) or (R, V).
Tensor seen_rows(const Tensor& log_prob) {
  return ~(log_prob.dim() == 2 ? log_prob.select(1, 0) : log_prob).isnan();
}

constexpr double kFirstHead = 0.05;  // first weight of the head within the joint softmax
constexpr double kMostRate = 0.5;
constexpr double kLeastProbability = 1e-300;

double rate_after(std::int64_t tokens, std::size_t n) {
  const auto size = static_cast<double>(n);
  return std::min(kMostRate, std::sqrt(std::log(size) / (2 * size * static_cast<double>(tokens))));
}

std::vector<double> first_weights(const Mixture& mixture) {
  double rest = 1;
  std::vector<double> first = {0, 0};
  for (std::size_t i = 0; i < mixture.size(); ++i) {
    if (mixture.by_bucket(i)) continue;
    rest -= mixture.constants(i)[0];
    first.push_back(mixture.constants(i)[0]);
  }
  first[0] = kFirstHead * rest, first[1] = (1 - kFirstHead) * rest;
  return first;
}

}  // namespace

Tensor Weight::of(const Tensor& log_prob) const {
  if (!log_rows.defined()) return log_prob + std::log(constant);
  const Tensor rows = log_rows.to(log_prob.options());
  return log_prob + (log_prob.dim() == 2 ? rows.unsqueeze(1) : rows);
}

Tensor Weight::rows(std::int64_t n) const {
  return log_rows.defined() ? log_rows.exp() : torch::full({n}, constant, torch::kFloat64);
}

Mixture::Mixture(const MemoryPlan& plan) : gates_(plan.gates) {
  for (const auto& weight : plan.weights())
    weights_.push_back({weight.kind, {weight.values.begin(), weight.values.end()}, weight.gated});
}

MixtureWeights Mixture::constant(const GateInputs& inputs) const {
  MixtureWeights weights;
  double rest = 1;
  for (std::size_t i = 0; i < size(); ++i) {
    Weight& own = weights.separate.emplace_back();
    if (by_bucket(i)) {
      const Tensor& bucket = inputs.buckets.at(kind(i));
      own.log_rows = torch::tensor(constants(i), torch::kFloat64)
                         .log()
                         .index_select(0, bucket.clamp_min(0))
                         .masked_fill(bucket < 0, -HUGE_VAL);
    } else {
      rest -= own.constant = constants(i)[0];
    }
  }
  weights.joint.constant = rest;
  return weights;
}

MixtureWeights Mixture::weights(const GateInputs& inputs) const {
  MixtureWeights weights = constant(inputs);
  if (!gates_.any()) return weights;
  gates_.expect_fitted();
  const Tensor log_shares = gate_log_shares(gates_.gate, inputs);
  Tensor left;  // log of what a source weighted by bucket leaves
  for (std::size_t i = 0; i < size(); ++i) {
    if (!gated(i)) continue;
    const auto row = std::find(gates_.sources.begin(), gates_.sources.end(), kind(i));
    weights.separate[i].log_rows = log_shares.select(1, row - gates_.sources.begin() + 1);
    if (by_bucket(i)) left = torch::log1p(-weights.separate[i].log_rows.exp());
  }
  // Sources without a gate keep their proportions within the rest.
  const double rest = 1 - gates_.gate.inner();
  const auto within = [&](Weight& weight) {
    if (weight.constant > 0)
      weight.log_rows = log_shares.select(1, 0) + std::log(weight.constant / rest);
  };
  within(weights.joint);
  for (std::size_t i = 0; i < size(); ++i)
    if (!gated(i) && !by_bucket(i)) within(weights.separate[i]);
  if (!left.defined()) return weights;
  weights.joint.log_rows = weights.joint.log_rows - left;
  for (std::size_t i = 0; i < size(); ++i)
    if (!by_bucket(i) && weights.separate[i].log_rows.defined())
      weights.separate[i].log_rows = weights.separate[i].log_rows - left;
  return weights;
}

Tensor Mixture::mix(const Components& components, const MixtureWeights& weights) const {
  const Tensor& joint = components.joint;
  Tensor log_prob = weights.joint.of(joint);
  if (weights.head.any())
    log_prob = torch::logaddexp(
        log_prob, weights.head.of(components.head.defined() ? components.head : joint));
  for (std::size_t i = 0; i < size(); ++i)
    if (!by_bucket(i) && weights.separate[i].any())
      log_prob = torch::logaddexp(log_prob,
          weights.separate[i].of(
              torch::where(components.separate[i].isnan(), joint, components.separate[i])));
  for (std::size_t i = 0; i < size(); ++i) {
    if (!by_bucket(i)) continue;
    const Weight rest{0, torch::log1p(-weights.separate[i].log_rows.exp())};
    const Tensor own = weights.separate[i].of(components.separate[i]);
    log_prob = torch::logaddexp(rest.of(log_prob), torch::where(own.isnan(), -HUGE_VAL, own));
  }
  return log_prob;
}

std::vector<Tensor> Mixture::given(
    const Components& components, const MixtureWeights& weights) const {
  const std::int64_t n = components.joint.size(0);
  std::vector<Tensor> given{weights.joint.rows(n)};
  for (std::size_t i = 0; i < size(); ++i) {
    given.push_back(weights.separate[i].rows(n));
    if (by_bucket(i)) continue;
    const Tensor seen = seen_rows(components.separate[i]).to(torch::kCPU, torch::kFloat64);
    given[0] = given[0] + given.back() * (1 - seen);
    given.back() = given.back() * seen;
  }
  for (std::size_t i = 0; i < size(); ++i) {
    if (!by_bucket(i)) continue;
    const Tensor rest = 1 - given[i + 1];
    given[0] = given[0] * rest;
    for (std::size_t j = 0; j < size(); ++j)
      if (!by_bucket(j) || j < i) given[j + 1] = given[j + 1] * rest;
  }
  return given;
}

void SoftBayes::learn(std::span<const double> p) {
  const std::size_t n = weights_.size();
  if (n < 2) return;
  double all = 0;
  for (std::size_t i = 0; i < n; ++i) all += weights_[i] * p[i];
  all = std::max(all, kLeastProbability);
  const double rate = rate_after(++tokens_, n), next = rate_after(tokens_ + 1, n);
  const double kept = next / rate;
  for (std::size_t i = 0; i < n; ++i)
    weights_[i] = kept * weights_[i] * (1 - rate + rate * p[i] / all) + (1 - kept) * first_[i];
}

OnlineWeights::OnlineWeights(const Mixture& mixture) : inner_(first_weights(mixture)) {
  for (std::size_t i = 0; i < mixture.size(); ++i) {
    by_bucket_.push_back(mixture.by_bucket(i));
    if (!mixture.by_bucket(i)) continue;
    outer_.push_back(mixture.kind(i));
    auto& own = buckets_.emplace_back();
    for (const double first : mixture.constants(i)) own.push_back(SoftBayes({1 - first, first}));
  }
}

std::vector<OnlineWeights::Buckets> OnlineWeights::buckets(
    const GateInputs& inputs, std::int64_t rows) const {
  std::vector<Buckets> all(static_cast<std::size_t>(rows));
  for (const auto& kind : outer_) {
    const Tensor of = inputs.buckets.at(kind).to(torch::kInt64).contiguous();
    for (std::size_t r = 0; r < all.size(); ++r)
      all[r].push_back(of.const_data_ptr<std::int64_t>()[r]);
  }
  return all;
}

std::vector<double> OnlineWeights::weights(const Buckets& buckets) const {
  const double alone = 1 / (1 + std::exp(log_learned_ - log_alone_));
  double learned = 1 - alone, rest = 1;  // shares of the whole
  std::vector<double> outer(buckets.size());
  for (std::size_t i = outer.size(); i-- > 0;) {
    const double own =
        buckets[i] < 0 ? 0
                       : learned * buckets_[i][static_cast<std::size_t>(buckets[i])].weights()[1];
    outer[i] = own / rest;
    learned -= own, rest -= own;
  }
  const auto inner = inner_.weights();
  std::vector<double> weights = {(alone + learned * inner[0]) / rest, learned * inner[1] / rest};
  std::size_t next = 2, next_outer = 0;
  for (const bool by_bucket : by_bucket_)
    weights.push_back(by_bucket ? outer[next_outer++] : learned * inner[next++] / rest);
  return weights;
}

void OnlineWeights::learn(std::span<const double> p, const Buckets& buckets) {
  std::vector<double> inner = {p[0], p[1]}, outer;
  for (std::size_t i = 0; i < by_bucket_.size(); ++i)
    (by_bucket_[i] ? outer : inner).push_back(p[i + 2]);
  const auto weights = inner_.weights();
  double learned = 0;
  for (std::size_t i = 0; i < inner.size(); ++i) learned += weights[i] * inner[i];
  inner_.learn(inner);
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (buckets[i] < 0) continue;
    SoftBayes& own = buckets_[i][static_cast<std::size_t>(buckets[i])];
    const double both[] = {learned, outer[i]};
    learned = own.weights()[0] * learned + own.weights()[1] * outer[i];
    own.learn(both);
  }
  log_alone_ += std::log(std::max(p[0], kLeastProbability));
  log_learned_ += std::log(std::max(learned, kLeastProbability));
}

MixtureWeights OnlineWeights::learn(const Components& components) {
  const Tensor& joint = components.joint;
  std::vector<Tensor> columns = {components.head.defined() ? components.head : joint, joint};
  columns.insert(columns.end(), components.separate.begin(), components.separate.end());
  for (Tensor& column : columns)  // a source without entries is the joint softmax
    column = torch::where(column.isnan(), joint, column).to(torch::kCPU, torch::kFloat64).exp();
  const Tensor p = torch::stack(columns, 1).contiguous();  // (R, columns)
  std::vector<std::vector<double>> rows;
  const auto* row = p.const_data_ptr<double>();
  for (const Buckets& of : buckets(components.gates, p.size(0))) {
    rows.push_back(weights(of));
    learn({row, columns.size()}, of);
    row += columns.size();
  }
  return to_mixture(rows);
}

MixtureWeights to_mixture(const std::vector<std::vector<double>>& rows) {
  std::vector<Weight> weights;
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    const auto values = core::mapped(rows, [&](const auto& row) { return row[i]; });
    weights.push_back({0, torch::tensor(values, torch::kFloat64).log()});
  }
  return {weights[1], weights[0], {weights.begin() + 2, weights.end()}};
}

}  // namespace infer
