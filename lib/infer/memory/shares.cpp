#include "infer/memory/shares.h"

#include <cmath>

namespace infer {

using torch::Tensor;

Tensor Weight::of(const Tensor& log_prob) const {
  if (!log_rows.defined()) return log_prob + std::log(constant);
  const Tensor rows = log_rows.to(log_prob.options());
  return log_prob + (log_prob.dim() == 2 ? rows.unsqueeze(1) : rows);
}

Tensor Weight::column(const Tensor& like) const {
  if (!log_rows.defined()) return torch::full_like(like, constant);
  return log_rows.exp().unsqueeze(1).to(like.options());
}

std::vector<Weight*> Shares::inner() {
  std::vector<Weight*> all{&joint, &memory, &cache, &stores};
  for (Weight& one : with) all.push_back(&one);
  return all;
}

void Shares::divide(double by) {
  for (Weight* const weight : inner()) weight->constant /= by;
}

Shares constant_shares(const MemoryPlan& plan) {
  Shares shares;
  shares.memory.constant = plan.interpolated() ? plan.memory_lambda : 0;
  shares.cache.constant = plan.cache > 0 ? plan.cache_lambda : 0;
  shares.stores.constant = plan.stores.interpolated() ? plan.stores.lambda : 0;
  for (const auto& model : plan.with.shares) shares.with.push_back({model.lambda});
  shares.joint.constant =
      1 - shares.memory.constant - shares.cache.constant - shares.stores.constant - plan.with.sum();
  return shares;
}

Shares gated_shares(const MemoryPlan& plan, const GateInputs& inputs) {
  const GatePlan& gates = plan.gates;
  gates.expect_fitted();
  const Tensor log_shares = gate_log_shares(gates.gate, inputs);
  Shares shares = constant_shares(plan);
  Tensor left;  // log of what n-grams leave
  for (std::size_t i = 0; i < gates.sources.size(); ++i) {
    const Tensor row = log_shares.select(1, static_cast<std::int64_t>(i) + 1);
    if (gates.sources[i] == "cache") shares.cache.log_rows = row;
    if (gates.sources[i] == "datastore") shares.stores.log_rows = row;
    if (gates.sources[i] == "with")
      shares.with[static_cast<std::size_t>(plan.with.gated())].log_rows = row;
    if (gates.sources[i] == "ngrams") {
      shares.ngrams = row.exp();
      left = torch::log1p(-shares.ngrams);
    }
  }
  // Those without a gate keep their proportions within the rest.
  const double rest = 1 - gates.gate.inner();
  for (Weight* const weight : shares.inner())
    if (!weight->log_rows.defined() && weight->constant > 0)
      weight->log_rows = log_shares.select(1, 0) + std::log(weight->constant / rest);
  if (left.defined())
    for (Weight* const weight : shares.inner())
      if (weight->log_rows.defined()) weight->log_rows = weight->log_rows - left;
  return shares;
}

}  // namespace infer
