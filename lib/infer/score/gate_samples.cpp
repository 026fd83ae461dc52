#include "infer/score/gate_samples.h"

#include <algorithm>

#include "infer/score/token_weights.h"

namespace infer {
namespace {

using torch::Tensor;

// (n, R) or (R) as columns (R, n); none where it is not used.
Tensor columns_of(const Tensor& tensor, std::int64_t rows) {
  if (!tensor.defined()) return torch::empty({rows, 0}, torch::kFloat64);
  return tensor.dim() == 1 ? tensor.unsqueeze(1).to(torch::kFloat64) : tensor.t();
}

Tensor as_columns(const Tensor& tensor, std::int64_t rows) {
  return tensor.defined() ? tensor : torch::empty({rows, 0}, torch::kFloat64);
}

// p of each source, the rest first; where a source sees nothing, joint's.
Tensor log_p_of(const Parts& parts, const MemoryPlan& plan, const Shares& rest_shares,
                const std::vector<std::string>& sources) {
  const Tensor joint = parts.joint[0][0];
  Tensor rest = rest_shares.joint.of(joint);
  const auto add = [&](const Tensor& source, const Weight& share) {
    if (source.defined() && share.any())
      rest = torch::logaddexp(rest, share.of(torch::where(source.isnan(), joint, source)));
  };
  const auto first = [](const Tensor& grid) { return grid.defined() ? grid[0] : grid; };
  const Tensor cache = first(parts.cache), stores = first(first(parts.stores));
  add(first(parts.memory), rest_shares.memory);
  add(cache, rest_shares.cache);
  add(stores, rest_shares.stores);
  for (std::size_t i = 0; parts.with.defined() && i < rest_shares.with.size(); ++i)
    add(parts.with[static_cast<std::int64_t>(i)], rest_shares.with[i]);
  std::vector<Tensor> all = {rest};
  bool ngrams = false;
  for (const auto& name : sources) {
    ngrams |= name == "ngrams";
    const Tensor own = name == "cache"       ? cache
                       : name == "datastore" ? stores
                       : name == "with"      ? parts.with[plan.with.gated()]
                                             : parts.ngrams.log_prob;
    all.push_back(torch::where(own.isnan(), joint, own));
  }
  if (parts.ngrams.bucket.defined() && !ngrams)
    for (auto& source : all) source = mix_ngrams(source, parts.ngrams, plan.ngrams.lambda);
  return torch::stack(all, 1);
}

// (R, 1), 1 on average.
Tensor weight_column(const Tensor& weight) {
  return weight.defined() ? even(weight).unsqueeze(1) : weight;
}

GateRow row_of(const std::string& source, std::vector<double> constants, std::int64_t weights) {
  return {source, std::move(constants), 0,
          std::vector<double>(static_cast<std::size_t>(weights), 0)};
}

void take(GateRow& row, const FittedGate::Row& fitted) {
  row.bias = fitted.bias, row.weights = fitted.weights;
}

// Whether stores are searched: their share beside all others together, which keep their constants.
GateRow fit_search(const Parts& parts, const MemoryPlan& plan, const GateInputs& inputs) {
  Shares shares = constant_shares(plan);
  const double lambda = shares.stores.constant;
  shares.stores.constant = 0;
  shares.divide(1 - lambda);
  Gate one;
  one.rows = {row_of("search", {lambda}, inputs.confidence.size(1))};
  GateProblem problem;
  problem.log_p = log_p_of(parts, plan, shares, {"datastore"});
  problem.offsets = gate_offsets(one, one.rows[0], inputs).unsqueeze(1);
  problem.features = {inputs.confidence};
  problem.weight = weight_column(parts.weight);
  take(one.rows[0], fit_gate(problem).rows[0]);
  return one.rows[0];
}

}  // namespace

void GateSamples::add(const Parts& parts) {
  const std::int64_t n = parts.head.size(0);
  const auto grid = [&](const Tensor& tensor) {
    return columns_of(tensor.defined() && tensor.dim() == 3 ? tensor[0] : tensor, n);
  };
  const std::vector<Tensor> columns = {grid(parts.joint),
                                       grid(parts.memory),
                                       grid(parts.cache),
                                       grid(parts.gates.cache_mass),
                                       grid(parts.stores),
                                       grid(parts.with),
                                       as_columns(parts.gates.confidence, n),
                                       as_columns(parts.gates.stores, n),
                                       as_columns(parts.gates.with, n),
                                       grid(parts.ngrams.log_prob),
                                       grid(parts.ngrams.bucket),
                                       as_columns(parts.ngrams.features, n),
                                       grid(parts.weight)};
  const Tensor rows = torch::cat(columns, 1).to(torch::kFloat32).contiguous();
  columns_.clear();
  for (const auto& tensor : columns) columns_.push_back(tensor.size(1));
  width_ = rows.size(1);
  const auto* from = rows.const_data_ptr<float>();
  for (std::int64_t i = 0; i < n; ++i, from += width_)
    if (next_++ % stride_ == 0) rows_.insert(rows_.end(), from, from + width_);
  while (static_cast<std::int64_t>(rows_.size() * sizeof(float)) > most_bytes_ && size() > 1)
    thin();
}

void GateSamples::thin() {
  const std::int64_t n = (size() + 1) / 2;
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(rows_.begin() + 2 * i * width_, width_, rows_.begin() + i * width_);
  rows_.resize(static_cast<std::size_t>(n * width_));
  stride_ *= 2;
}

Parts GateSamples::at(std::int64_t temperature, std::int64_t theta,
                      std::int64_t store_temperature) const {
  const Tensor all = torch::from_blob(const_cast<float*>(rows_.data()), {size(), width_});
  std::int64_t begin = 0;
  std::size_t next = 0;
  const auto piece = [&]() -> Tensor {
    const std::int64_t width = columns_[next++];
    begin += width;
    return width == 0 ? Tensor{} : all.slice(1, begin - width, begin).to(torch::kFloat64);
  };
  const auto point = [](const Tensor& tensor, std::int64_t i) {
    return tensor.defined() ? tensor.select(1, i).unsqueeze(0) : tensor;
  };
  Parts parts;
  parts.joint = point(piece(), temperature).unsqueeze(0);
  parts.head = parts.joint[0][0];
  parts.memory = point(piece(), temperature);
  parts.cache = point(piece(), theta);
  parts.gates.cache_mass = point(piece(), theta);
  parts.stores = point(piece(), store_temperature);
  if (parts.stores.defined()) parts.stores = parts.stores.unsqueeze(0);
  if (const Tensor with = piece(); with.defined()) parts.with = with.t();
  parts.gates.confidence = piece();
  parts.gates.stores = piece();
  parts.gates.with = piece();
  parts.ngrams.log_prob = piece();
  parts.ngrams.bucket = piece();
  parts.ngrams.features = piece();
  if (const Tensor weight = piece(); weight.defined()) parts.weight = weight.squeeze(1);
  if (parts.ngrams.bucket.defined()) {
    parts.ngrams.log_prob = parts.ngrams.log_prob.squeeze(1);
    parts.ngrams.bucket = parts.ngrams.bucket.squeeze(1).to(torch::kInt64);
  }
  return parts;
}

GatesFitted fit_gates(const Parts& parts, const MemoryPlan& plan) {
  const GateInputs inputs = gate_inputs(parts);
  const auto& sources = plan.gates.sources;
  GatesFitted fitted;
  Gate& gate = fitted.gate;
  Shares shares = constant_shares(plan);
  for (const auto& name : sources) {
    if (name == "cache") shares.cache.constant = 0;
    if (name == "datastore") shares.stores.constant = 0;
    double with = 0;
    if (name == "with")
      std::swap(with, shares.with[static_cast<std::size_t>(plan.with.gated())].constant);
    const auto constants = name == "cache"       ? std::vector<double>{plan.cache_lambda}
                           : name == "datastore" ? std::vector<double>{plan.stores.lambda}
                           : name == "with"      ? std::vector<double>{with}
                                                 : plan.ngrams.lambda;
    gate.rows.push_back(row_of(name, constants, 0));
  }
  shares.divide(1 - gate.inner());
  GateProblem problem;
  problem.log_p = log_p_of(parts, plan, shares, sources);
  std::vector<Tensor> offsets;
  for (const auto& row : gate.rows) {
    offsets.push_back(gate_offsets(gate, row, inputs));
    problem.features.push_back(gate_features(row, inputs));
  }
  problem.offsets = torch::stack(offsets, 1);
  problem.weight = weight_column(parts.weight);
  const FittedGate best = fit_gate(problem);
  for (std::size_t i = 0; i < gate.rows.size(); ++i) take(gate.rows[i], best.rows[i]);
  if (plan.gates.has("datastore")) gate.search = fit_search(parts, plan, inputs);
  fitted.constant_loss = best.constant_loss;
  fitted.loss = best.loss;
  return fitted;
}

}  // namespace infer
