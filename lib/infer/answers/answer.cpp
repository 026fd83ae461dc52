#include "infer/answers/answer.h"

#include "core/json_line.h"

namespace infer {
namespace {

core::OrderedJson tokens_of(const ScoredText& text, const text::Tokenizer& tokenizer) {
  auto list = core::OrderedJson::array();
  bool line_start = false;
  for (std::size_t i = 0; i < text.tokens.size(); ++i) {
    std::string printed;
    tokenizer.decode_token(static_cast<std::uint32_t>(text.tokens[i]), line_start, printed);
    list.push_back({{"token", text.tokens[i]}, {"text", printed},
        {"log_prob", text.scores.log_prob[i]}, {"greedy", static_cast<bool>(text.scores.best[i])}});
  }
  return list;
}

void put(core::OrderedJson& json, const ScoredChoice& choice, const text::Tokenizer& tokenizer,
    bool per_token) {
  const auto& [text, log_prob, domain] = choice;
  json.update({{"log_prob", log_prob}, {"tokens", text.tokens.size()}, {"bytes", text.bytes},
      {"greedy", text.scores.greedy()}});
  if (domain) json["domain_log_prob"] = *domain;
  if (per_token) json["per_token"] = tokens_of(text, tokenizer);
  if (!text.scores.cited.empty()) json["citations"] = to_json(text.scores.cited);
  if (!text.scores.retrieved.empty()) json["retrieved"] = text.scores.retrieved;
}

}  // namespace

std::vector<task::ChoiceScore> Answer::choice_scores() const {
  return core::mapped(choices, [](const ScoredChoice& choice) {
    return task::ChoiceScore{
        choice.log_prob, std::ssize(choice.text.tokens), choice.text.bytes, choice.domain_log_prob};
  });
}

std::string json_line(const Answer& answer, const text::Tokenizer& tokenizer, bool per_token) {
  core::OrderedJson json = core::OrderedJson::object();
  if (!answer.error.empty()) {
    json["error"] = answer.error;
  } else if (answer.kind != task::ScoreRequest::Kind::choices) {
    put(json, answer.choices[0], tokenizer, per_token);
  } else {
    json["choices"] = core::OrderedJson::array();
    for (const auto& choice : answer.choices)
      put(json["choices"].emplace_back(), choice, tokenizer, per_token);
    const auto predictions = task::predict(answer.choice_scores());
    core::OrderedJson correct;
    for (const auto& [rule, choice] : predictions) {
      json["prediction"][rule] = choice;
      if (answer.gold) correct[rule] = choice == *answer.gold;
    }
    if (answer.gold) {
      json["gold"] = *answer.gold;
      json["correct"] = std::move(correct);
    }
  }
  const std::string line = core::dump(json) + "\n";
  return answer.id ? core::with_member("id", *answer.id, line) : line;
}

}  // namespace infer
