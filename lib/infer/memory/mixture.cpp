#include "infer/memory/mixture.h"

namespace infer {
namespace {

// Returns (R) bool: the rows in which a source has entries. log_prob is (R) or (R, V).
Tensor seen_rows(const Tensor& log_prob) {
  return ~(log_prob.dim() == 2 ? log_prob.select(1, 0) : log_prob).isnan();
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

}  // namespace infer
