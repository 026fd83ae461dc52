#include "infer/memory/online.h"

namespace infer {
namespace {

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
    std::vector<double> values;
    for (const auto& row : rows) values.push_back(row[i]);
    weights.push_back({0, torch::tensor(values, torch::kFloat64).log()});
  }
  return {weights[1], weights[0], {weights.begin() + 2, weights.end()}};
}

}  // namespace infer
