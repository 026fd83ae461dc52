#include "infer/sources/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "infer/sources/source.h"

namespace infer {
namespace {

using torch::Tensor;

double log_share(double share) { return std::log(std::max(share, kLeastShare)); }

std::vector<std::string> names_of(const std::vector<GateRow>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.source);
  return names;
}

}  // namespace

const std::vector<const SourceKind*>& gate_kinds() {
  static const std::vector<const SourceKind*> kinds = [] {
    auto all = source_kinds();
    std::erase_if(all, [](const auto* kind) { return kind->facts().gate.flag.empty(); });
    return all;
  }();
  return kinds;
}

const GateRow* Gate::find(const std::string& source) const {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.source == source; });
  return row == rows.end() ? nullptr : &*row;
}

double Gate::inner() const {
  double sum = 0;
  for (const auto& row : rows)
    if (!row.by_bucket()) sum += row.constants[0];
  return sum;
}

Tensor gate_offsets(const Gate& gate, const GateRow& row, const GateInputs& inputs) {
  const double rest = std::log1p(-gate.inner());
  const std::int64_t n = inputs.confidence.size(0);
  if (!row.by_bucket())
    return torch::full({n}, log_share(row.constants[0]) - rest, torch::kFloat64);
  std::vector<double> scores;
  for (const double share : row.constants)
    scores.push_back(log_share(share) - std::log1p(-share) - rest);
  return torch::tensor(scores, torch::kFloat64)
      .index_select(0, inputs.bucket.clamp_min(0))
      .masked_fill(inputs.bucket < 0, -HUGE_VAL);
}

Tensor gate_features(const GateRow& row, const GateInputs& inputs) {
  const auto own = inputs.own.find(row.source);
  return own == inputs.own.end() ? inputs.confidence
                                 : torch::cat({inputs.confidence, own->second}, 1);
}

Tensor gate_log_shares(const Gate& gate, const GateInputs& inputs) {
  std::vector<Tensor> scores = {torch::zeros({inputs.confidence.size(0)}, torch::kFloat64)};
  for (const auto& row : gate.rows) {
    const Tensor more =
        gate_features(row, inputs).mv(torch::tensor(row.weights, torch::kFloat64)) + row.bias;
    scores.push_back(gate_offsets(gate, row, inputs) + more.nan_to_num(0, 0, 0));
  }
  return torch::stack(scores, 1).log_softmax(1);
}

Tensor search_shares(const Gate& gate, const Tensor& confidence) {
  const GateRow& row = *gate.search;
  const double constant = row.constants[0];
  return (confidence.mv(torch::tensor(row.weights, torch::kFloat64)) + row.bias +
          log_share(constant) - std::log1p(-constant))
      .sigmoid();
}

bool GatePlan::has(const std::string& source) const {
  return std::find(sources.begin(), sources.end(), source) != sources.end();
}

bool GatePlan::searched() const {
  return std::ranges::any_of(gate_kinds(), [&](const auto* kind) {
    return kind->facts().gate.searched && has(kind->name());
  });
}

void GatePlan::expect_fitted() const {
  const auto fitted = names_of(gate.rows);
  if (fitted == sources && (!searched() || gate.search.has_value())) return;
  std::string flags;
  for (const auto* const kind : gate_kinds())
    if (has(kind->name())) flags += (flags.empty() ? "" : ", ") + kind->facts().gate.flag;
  core::fail(core::Code::usage,
             "{} gate: {}; fit it with eval-ppl --tune SHARD, and read its output with --config",
             flags,
             fitted.empty() ? "there is no gate yet"
                            : fmt::format("--gate was fitted for {}", fmt::join(fitted, ", ")));
}

}  // namespace infer
