#include "task/choice_rules.h"

namespace task {
namespace {

template <class Value> std::size_t best(const std::vector<ChoiceScore>& choices, Value value) {
  return static_cast<std::size_t>(
      std::max_element(choices.begin(), choices.end(),
          [&](const auto& a, const auto& b) { return value(a) < value(b); }) -
      choices.begin());
}

// Returns the mean, or 0 for no items.
double each(double sum, std::int64_t n) {
  return sum / static_cast<double>(std::max<std::int64_t>(1, n));
}

}  // namespace

std::vector<std::pair<std::string, std::size_t>> predict(const std::vector<ChoiceScore>& choices) {
  std::vector<std::pair<std::string, std::size_t>> predictions = {
      {"sum", best(choices, [](const auto& c) { return c.log_prob; })},
      {"byte", best(choices, [](const auto& c) { return each(c.log_prob, c.bytes); })},
      {"token", best(choices, [](const auto& c) { return each(c.log_prob, c.tokens); })}};
  if (std::all_of(choices.begin(), choices.end(),
          [](const auto& c) { return c.domain_log_prob.has_value(); }))
    predictions.emplace_back("mutual_information",
        best(choices, [](const auto& c) { return c.log_prob - *c.domain_log_prob; }));
  return predictions;
}

Accuracy accuracy(const std::vector<bool>& right) {
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(right.size());
  Accuracy found{static_cast<double>(std::count(right.begin(), right.end(), true)) / n, {}, {}};
  if (right.size() < 2) return found;
  const double share = found.share, z2 = kZ * kZ / n;
  const double middle = (share + z2 / 2) / (1 + z2);
  const double reach = std::sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2);
  found.low = share == 0 ? 0 : middle - reach;
  found.high = share == 1 ? 1 : middle + reach;
  return found;
}

}  // namespace task
