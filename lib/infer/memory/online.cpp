#include "infer/memory/online.h"

#include <algorithm>
#include <cmath>

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

// Returns probabilities (R) as float64. NaN is replaced by `otherwise`.
std::vector<double> numbers(const Tensor& log_prob, const Tensor& otherwise) {
  const Tensor p = torch::where(log_prob.isnan(), otherwise, log_prob)
                       .to(torch::kCPU, torch::kFloat64)
                       .exp()
                       .contiguous();
  return {p.const_data_ptr<double>(), p.const_data_ptr<double>() + p.size(0)};
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

TokenWeights OnlineWeights::weights(std::int64_t bucket) const {
  const double alone = 1 / (1 + std::exp(log_learned_ - log_alone_));
  const double of_bucket =
      bucket < 0 ? 0 : (1 - alone) * buckets_[static_cast<std::size_t>(bucket)].weights()[1];
  const double learned = 1 - alone - of_bucket, rest = 1 - of_bucket;  // shares of the whole
  const auto inner = inner_.weights();
  TokenWeights weights;
  weights.head = (alone + learned * inner[0]) / rest;
  weights.joint = learned * inner[1] / rest;
  std::size_t next = 2;
  for (const bool by_bucket : by_bucket_)
    weights.own.push_back(by_bucket ? of_bucket : learned * inner[next++] / rest);
  return weights;
}

void OnlineWeights::learn(const TokenParts& parts) {
  std::vector<double> inner = {parts.head, parts.joint};
  double outer = 0;
  for (std::size_t i = 0; i < by_bucket_.size(); ++i) {
    if (by_bucket_[i]) outer = parts.own[i];
    if (!by_bucket_[i]) inner.push_back(parts.own[i]);
  }
  const auto weights = inner_.weights();
  double learned = 0;
  for (std::size_t i = 0; i < inner.size(); ++i) learned += weights[i] * inner[i];
  inner_.learn(inner);
  if (parts.bucket >= 0) {
    SoftBayes& bucket = buckets_[static_cast<std::size_t>(parts.bucket)];
    const double both[] = {learned, outer};
    learned = bucket.weights()[0] * learned + bucket.weights()[1] * outer;
    bucket.learn(both);
  }
  log_alone_ += std::log(std::max(parts.head, kLeastProbability));
  log_learned_ += std::log(std::max(learned, kLeastProbability));
}

MixtureWeights OnlineWeights::learn(const Components& components) {
  const Tensor& joint = components.joint;
  const Tensor& alone = components.head.defined() ? components.head : joint;
  const auto head = numbers(alone, joint), together = numbers(joint, joint);
  std::vector<std::vector<double>> own;
  for (const auto& source : components.own) own.push_back(numbers(source, joint));
  const Tensor buckets = components.gates.bucket.defined()
                             ? components.gates.bucket.to(torch::kInt64).contiguous()
                             : Tensor();
  std::vector<TokenWeights> rows;
  TokenParts parts;
  parts.own.resize(own.size());
  for (std::size_t r = 0; r < head.size(); ++r) {
    parts.head = head[r], parts.joint = together[r];
    for (std::size_t i = 0; i < own.size(); ++i) parts.own[i] = own[i][r];
    if (buckets.defined()) parts.bucket = buckets.const_data_ptr<std::int64_t>()[r];
    rows.push_back(weights(parts.bucket));
    learn(parts);
  }
  return to_mixture(rows);
}

MixtureWeights to_mixture(const std::vector<TokenWeights>& rows) {
  MixtureWeights weights;
  const auto log_rows = [&](const auto& of) {
    std::vector<double> values;
    for (const auto& row : rows) values.push_back(of(row));
    return torch::tensor(values, torch::kFloat64).log();
  };
  weights.head.log_rows = log_rows([](const auto& row) { return row.head; });
  weights.joint.log_rows = log_rows([](const auto& row) { return row.joint; });
  for (std::size_t i = 0; !rows.empty() && i < rows[0].own.size(); ++i)
    weights.own.push_back({0, log_rows([i](const auto& row) { return row.own[i]; })});
  return weights;
}

}  // namespace infer
