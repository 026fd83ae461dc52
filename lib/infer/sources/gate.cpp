// Text form of gates.

#include "infer/sources/gate.h"

#include "infer/sources/source.h"

namespace infer {
namespace {

double log_share(double share) { return std::log(std::max(share, kLeastShare)); }

constexpr const char* kSearch = "search";
constexpr double kMostWeight = 1e12;  // a fit gives no larger weight

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  const std::string shown = text.size() > 40 ? text.substr(0, 40) + "…" : text;
  core::bad_usage("--gate: {} in '{}'; tune again", why, shown);
}

double number_of(const std::string& number, const std::string& text) {
  const auto value = core::read_number<double>(number);
  if (!value || !(std::abs(*value) <= kMostWeight))
    refuse(text, fmt::format("not a number: {}", number));
  return *value;
}

const GateFacts* facts_of(const std::string& source) {
  const auto* const kind = core::find_by(gate_kinds(), source, &SourceKind::name);
  return kind == nullptr ? nullptr : &(*kind)->facts().gate;
}

// Returns the names of a row's weights, or none for an unknown source.
std::vector<std::string> weights_of(const std::string& source) {
  const GateFacts* const facts = facts_of(source);
  if (facts == nullptr && source != kSearch) return {};
  std::vector<std::string> names = kConfidence;
  if (facts != nullptr) names.insert(names.end(), facts->features.begin(), facts->features.end());
  return names;
}

std::string text_of(const GateRow& row) {
  std::string text =
      fmt::format("{} shares={} bias={}", row.source, fmt::join(row.constants, "+"), row.bias);
  const auto names = weights_of(row.source);
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format(" {}={}", names[i], row.weights[i]);
  return text;
}

GateRow parse_row(const std::string& text) {
  const auto parts = core::pieces(text, ' ');
  GateRow row;
  row.source = parts[0];
  const auto names = weights_of(row.source);
  if (names.empty()) refuse(text, "a source without a gate");
  if (parts.size() != names.size() + 3) refuse(text, "not one number per feature");
  const auto value = [&](std::size_t i, const std::string& name) {
    if (!parts[i].starts_with(name + "=")) refuse(text, fmt::format("no {}", name));
    return parts[i].substr(name.size() + 1);
  };
  for (const auto& share : core::pieces(value(1, "shares"), '+'))
    row.constants.push_back(number_of(share, text));
  row.bias = number_of(value(2, "bias"), text);
  for (std::size_t i = 0; i < names.size(); ++i)
    row.weights.push_back(number_of(value(i + 3, names[i]), text));
  const GateFacts* const facts = facts_of(row.source);
  const auto shares = static_cast<std::size_t>(facts == nullptr ? 1 : facts->weights);
  if (row.constants.size() != shares) refuse(text, fmt::format("not {} weights", shares));
  for (const double share : row.constants)
    if (!(share >= 0 && share < 1)) refuse(text, "an invalid weight");
  return row;
}

}  // namespace

const std::vector<const SourceKind*>& gate_kinds() {
  static const auto kinds =
      core::kept(source_kinds(), [](const auto* kind) { return !kind->facts().gate.flag.empty(); });
  return kinds;
}

const GateRow* Gate::find(const std::string& source) const {
  return core::find_by(rows, source, &GateRow::source);
}

double Gate::inner() const {
  return core::sum_of(rows, [](const auto& row) { return row.by_bucket() ? 0 : row.constants[0]; });
}

Tensor gate_offsets(const Gate& gate, const GateRow& row, const GateInputs& inputs) {
  const double rest = std::log1p(-gate.inner());
  const std::int64_t n = inputs.confidence.size(0);
  if (!row.by_bucket())
    return torch::full({n}, log_share(row.constants[0]) - rest, torch::kFloat64);
  const Tensor& bucket = inputs.buckets.at(row.source);
  const auto scores = core::mapped(
      row.constants, [&](double share) { return log_share(share) - std::log1p(-share) - rest; });
  return torch::tensor(scores, torch::kFloat64)
      .index_select(0, bucket.clamp_min(0))
      .masked_fill(bucket < 0, -HUGE_VAL);
}

Tensor gate_features(const GateRow& row, const GateInputs& inputs) {
  const auto own = inputs.by_source.find(row.source);
  return own == inputs.by_source.end() ? inputs.confidence
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

bool GatePlan::searched() const {
  return std::ranges::any_of(gate_kinds(),
      [&](const auto* kind) { return kind->facts().gate.searched && has(kind->name()); });
}

void GatePlan::expect_fitted() const {
  const auto fitted = core::mapped(gate.rows, &GateRow::source);
  if (fitted == sources && (!searched() || gate.search.has_value())) return;
  std::string flags;
  for (const auto* const kind : gate_kinds())
    if (has(kind->name())) flags += (flags.empty() ? "" : ", ") + kind->facts().gate.flag;
  core::bad_usage(
      "{} gate: {}; fit it with eval-ppl --tune SHARD, and read its output with --config", flags,
      fitted.empty() ? "there is no gate yet"
                     : fmt::format("--gate was fitted for {}", fmt::join(fitted, ", ")));
}

std::vector<std::string> to_texts(const Gate& gate) {
  auto texts = core::mapped(gate.rows, [](const auto& row) { return text_of(row); });
  if (gate.search) texts.push_back(text_of(*gate.search));
  return texts;
}

Gate parse_gate(const std::vector<std::string>& texts) {
  std::vector<GateRow> rows;
  Gate gate;
  for (const auto& text : texts) {
    GateRow row = parse_row(text);
    if (std::ranges::count(rows, row.source, &GateRow::source) > 0)
      refuse(text, "a source given twice");
    rows.push_back(std::move(row));
  }
  for (const auto* const kind : gate_kinds())
    for (const auto& row : rows)
      if (row.source == kind->name()) gate.rows.push_back(row);
  for (const auto& row : rows)
    if (row.source == kSearch) gate.search = row;
  if (!(gate.inner() < 1)) refuse(texts[0], "weights that sum to 1 or more");
  return gate;
}

}  // namespace infer
