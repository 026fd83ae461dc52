#include "infer/answers/answer_totals.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/score/report.h"

namespace infer {
namespace {

using task::ScoreRequest;

core::OrderedJson figure(const std::optional<double>& value) {
  return value ? core::OrderedJson(*value) : core::OrderedJson(nullptr);
}

}  // namespace

void AnswerTotals::add(const Answer& answer) {
  ++requests_;
  if (!answer.error.empty()) {
    ++errors_;
    return;
  }
  if (answer.kind != ScoreRequest::Kind::choices) {
    const auto& choice = answer.choices[0];
    totals_.nats -= choice.log_prob;
    totals_.tokens += choice.text.tokens.size();
    totals_.bytes += static_cast<double>(choice.text.bytes);
    if (answer.kind == ScoreRequest::Kind::continuation)
      greedy_.push_back(choice.text.scores.greedy());
    return;
  }
  if (!answer.gold) return;
  ++questions_;
  const auto predictions = task::predict(answer.choice_scores());
  right_.resize(std::max(right_.size(), predictions.size()));
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    right_[i].first = predictions[i].first;
    right_[i].second.push_back(predictions[i].second == *answer.gold);
  }
}

std::vector<std::pair<std::string, task::Accuracy>> AnswerTotals::accuracies() const {
  std::vector<std::pair<std::string, task::Accuracy>> all;
  if (!greedy_.empty()) all.emplace_back("greedy", task::accuracy(greedy_));
  for (const auto& [rule, right] : right_) all.emplace_back(rule, task::accuracy(right));
  return all;
}

core::OrderedJson AnswerTotals::figures() const {
  core::OrderedJson json;
  json["requests"] = requests_;
  json["errors"] = errors_;
  json["loss"] = figure(totals_.loss());
  json["perplexity"] = figure(totals_.perplexity());
  json["bits_per_byte"] = figure(totals_.bits_per_byte());
  json["tokens"] = totals_.tokens;
  json["bytes"] = static_cast<std::uint64_t>(totals_.bytes);
  json["questions"] = questions_;
  for (const auto& [name, found] : accuracies()) {
    json[name] = found.share;
    json[name + "_low"] = figure(found.low);
    json[name + "_high"] = figure(found.high);
  }
  return json;
}

std::string AnswerTotals::summary() const {
  std::string text = fmt::format("{} requests", requests_);
  if (errors_ > 0) text += fmt::format(", {} of them failed", errors_);
  if (totals_.tokens > 0)
    text += fmt::format(", {} tokens, perplexity {:.5g}", totals_.tokens, totals_.perplexity());
  for (const auto& [name, found] : accuracies()) {
    text += fmt::format(", {} {:.4g}", name, found.share);
    if (found.low) text += fmt::format(" ({:.4g} to {:.4g})", *found.low, *found.high);
  }
  return text;
}

}  // namespace infer
