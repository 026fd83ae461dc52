#include "infer/generate/logit_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace infer {
namespace {

// The log-probability of a token that is not allowed: finite, so that a row always has a best
// token.
constexpr float kNever = -1e30F;
constexpr double kMostBias = 1e9;

std::pair<std::int64_t, double> bias_of(const std::string& text) {
  std::pair<std::int64_t, double> bias;
  const char* const end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, bias.first);
  if (id.ec == std::errc() && id.ptr != end && *id.ptr == ':') {
    const auto value = std::from_chars(id.ptr + 1, end, bias.second);
    if (value.ec == std::errc() && value.ptr == end && std::abs(bias.second) <= kMostBias)
      return bias;
  }
  core::fail(core::Code::usage, "--logit-bias {}: takes ID:X, the id of a token and a number",
             text);
}

}  // namespace

bool LogitRules::any() const { return counts() || !biases.empty() || !allowed.empty(); }

void LogitRules::check(std::int64_t words, bool flags) const {
  const auto expect = [&](const char* rule, std::int64_t id) {
    if (id < 0 || id >= words)
      core::fail(core::Code::bad_data, "{}: {} is not a token id; the tokenizer has {} tokens",
                 rule, id, words);
  };
  for (const auto& [id, bias] : biases) expect(flags ? "--logit-bias" : "logit_bias", id);
  for (const auto id : allowed) expect(flags ? "--allowed-token-ids" : "allowed_token_ids", id);
}

void LogitOptions::fields(core::FieldList& f) {
  f("presence-penalty", presence, "subtract X from the logits of tokens that the text has")
      .between(-100, 100);
  f("frequency-penalty", frequency,
    "subtract X from the logits of tokens for each time that the text has them")
      .between(-100, 100);
  f("repetition-penalty", repetition,
    "divide positive logits of tokens of the prompt and the text by X, multiply others by it")
      .above(0)
      .at_most(100);
  f("logit-bias", biases, "ID:X adds X to the logit of a token; may be repeated");
  f("allowed-token-ids", allowed, "draw only these tokens").between(0, INT32_MAX);
}

LogitRules LogitOptions::rules() const {
  LogitRules made{allowed, {}, repetition, frequency, presence};
  for (const auto& bias : biases) made.biases.push_back(bias_of(bias));
  return made;
}

ChangedLogits::ChangedLogits(LogitRulesPtr rules, std::span<const std::int64_t> prompt)
    : rules_(rules != nullptr && rules->any() ? std::move(rules) : nullptr) {
  if (!needs_normaliser()) return;
  for (const auto token : prompt) counts_.try_emplace(token, 0);
}

void ChangedLogits::add(std::int64_t token) {
  if (any() && rules_->counts()) ++counts_[token];
}

void ChangedLogits::apply(std::span<float> log_p, float log_z) const {
  const auto at = [&](std::int64_t id) -> float& { return log_p[static_cast<std::size_t>(id)]; };
  if (!rules_->allowed.empty()) {
    std::vector<float> kept;
    for (const auto id : rules_->allowed) kept.push_back(at(id));
    std::fill(log_p.begin(), log_p.end(), kNever);
    for (std::size_t i = 0; i < kept.size(); ++i) at(rules_->allowed[i]) = kept[i];
  }
  for (const auto& [id, bias] : rules_->biases)
    at(id) = std::max(kNever, at(id) + static_cast<float>(bias));
  const auto repetition = static_cast<float>(rules_->repetition);
  for (const auto& [id, count] : counts_) {
    if (id < 0 || id >= std::ssize(log_p)) continue;
    float logit = at(id) + log_z;
    if (at(id) <= kNever) continue;
    if (repetition != 1) logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= static_cast<float>(static_cast<double>(count) * rules_->frequency);
    if (count > 0) logit -= static_cast<float>(rules_->presence);
    at(id) = std::max(kNever, logit - log_z);
  }
}

}  // namespace infer
