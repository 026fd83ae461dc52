#include "infer/memory/online.h"

namespace infer {
namespace {

using torch::Tensor;

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
    for (const double first : mixture.constants(i))
      buckets_.push_back(SoftBayes({1 - first, first}));
  }
}

std::vector<double> OnlineWeights::weights(std::int64_t bucket) const {
  const double alone = 1 / (1 + std::exp(log_learned_ - log_alone_));
  const double of_bucket =
      bucket < 0 ? 0 : (1 - alone) * buckets_[static_cast<std::size_t>(bucket)].weights()[1];
  const double learned = 1 - alone - of_bucket, rest = 1 - of_bucket;  // shares of the whole
  const auto inner = inner_.weights();
  std::vector<double> weights = {(alone + learned * inner[0]) / rest, learned * inner[1] / rest};
  std::size_t next = 2;
  for (const bool by_bucket : by_bucket_)
    weights.push_back(by_bucket ? of_bucket : learned * inner[next++] / rest);
  return weights;
}

void OnlineWeights::learn(std::span<const double> p, std::int64_t bucket) {
  std::vector<double> inner = {p[0], p[1]};
  double outer = 0;
  for (std::size_t i = 0; i < by_bucket_.size(); ++i) {
    if (by_bucket_[i]) outer = p[i + 2];
    if (!by_bucket_[i]) inner.push_back(p[i + 2]);
  }
  const auto weights = inner_.weights();
  double learned = 0;
  for (std::size_t i = 0; i < inner.size(); ++i) learned += weights[i] * inner[i];
  inner_.learn(inner);
  if (bucket >= 0) {
    SoftBayes& own = buckets_[static_cast<std::size_t>(bucket)];
    const double both[] = {learned, outer};
    learned = own.weights()[0] * learned + own.weights()[1] * outer;
    own.learn(both);
  }
  log_alone_ += std::log(std::max(p[0], kLeastProbability));
  log_learned_ += std::log(std::max(learned, kLeastProbability));
}

MixtureWeights OnlineWeights::learn(const Components& components) {
  const Tensor& joint = components.joint;
  std::vector<Tensor> columns = {components.head.defined() ? components.head : joint, joint};
  columns.insert(columns.end(), components.own.begin(), components.own.end());
  for (Tensor& column : columns)  // a source without entries is the joint softmax
    column = torch::where(column.isnan(), joint, column).to(torch::kCPU, torch::kFloat64).exp();
  const Tensor p = torch::stack(columns, 1).contiguous();  // (R, columns)
  Tensor buckets = components.gates.bucket;
  if (buckets.defined()) buckets = buckets.to(torch::kInt64).contiguous();
  std::vector<std::vector<double>> rows;
  for (std::int64_t r = 0; r < p.size(0); ++r) {
    const std::int64_t bucket = buckets.defined() ? buckets.const_data_ptr<std::int64_t>()[r] : -1;
    rows.push_back(weights(bucket));
    learn({p.const_data_ptr<double>() + r * p.size(1), columns.size()}, bucket);
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
