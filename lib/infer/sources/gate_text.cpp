// Text form of gates.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "infer/sources/gate.h"
#include "infer/sources/share.h"
#include "infer/sources/source.h"

namespace infer {
namespace {

constexpr const char* kSearch = "search";
constexpr double kMostWeight = 1e12;  // a fit gives no larger weight

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  const std::string shown = text.size() > 40 ? text.substr(0, 40) + "…" : text;
  core::fail(core::Code::usage, "--gate: {} in '{}'; tune again", why, shown);
}

double number_of(const std::string& number, const std::string& text) {
  const auto value = number_in(number);
  if (!value || !(std::abs(*value) <= kMostWeight))
    refuse(text, fmt::format("not a number: {}", number));
  return *value;
}

const GateFacts* facts_of(const std::string& source) {
  for (const auto* const kind : gate_kinds())
    if (kind->name() == source) return &kind->facts().gate;
  return nullptr;
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
  const auto parts = pieces(text, ' ');
  GateRow row;
  row.source = parts[0];
  const auto names = weights_of(row.source);
  if (names.empty()) refuse(text, "a source without a gate");
  if (parts.size() != names.size() + 3) refuse(text, "not one number per feature");
  const auto value = [&](std::size_t i, const std::string& name) {
    if (!parts[i].starts_with(name + "=")) refuse(text, fmt::format("no {}", name));
    return parts[i].substr(name.size() + 1);
  };
  for (const auto& share : pieces(value(1, "shares"), '+'))
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

std::vector<std::string> to_texts(const Gate& gate) {
  std::vector<std::string> texts;
  for (const auto& row : gate.rows) texts.push_back(text_of(row));
  if (gate.search) texts.push_back(text_of(*gate.search));
  return texts;
}

Gate parse_gate(const std::vector<std::string>& texts) {
  std::vector<GateRow> rows;
  Gate gate;
  for (const auto& text : texts) {
    GateRow row = parse_row(text);
    const bool twice = std::any_of(rows.begin(), rows.end(),
                                   [&](const auto& r) { return r.source == row.source; });
    if (twice) refuse(text, "a source given twice");
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
