#include "infer/answers/answer_all.h"

namespace infer {
namespace {

using task::ScoreRequest;

core::OrderedJson figure(const std::optional<double>& value) {
  return value ? core::OrderedJson(*value) : core::OrderedJson(nullptr);
}

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatchOfFiles = 32;

std::vector<task::ScoreRequest> next(task::ScoreRequestReader& requests, std::int64_t most) {
  std::vector<task::ScoreRequest> batch;
  while (std::ssize(batch) < most) {
    auto request = requests.next();
    if (!request) break;
    batch.push_back(std::move(*request));
  }
  return batch;
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
  core::OrderedJson json{{"requests", requests_}, {"errors", errors_},
      {"loss", figure(totals_.loss())}, {"perplexity", figure(totals_.perplexity())},
      {"bits_per_byte", figure(totals_.bits_per_byte())}, {"tokens", totals_.tokens},
      {"bytes", static_cast<std::uint64_t>(totals_.bytes)}, {"questions", questions_}};
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

void AnswerOptions::fields(core::FieldList& f) {
  f("format", format, "format of FILE; auto: jsonl if its first line begins with {, else lines",
      {"auto", "lines", "jsonl"});
  f("per-token", per_token, "print the text and the log-probability of each token");
  f("keep-going", keep_going, "answer the other requests if one is invalid");
  f("batch", batch, "requests per batch; auto: 32 from files, 1 from a pipe").auto_or(1, 1e6);
}

AllAnswered answer_all(Answerer& answerer, task::ScoreRequestReader& requests,
    const AnswerOptions& options, core::ByteSink& out, const AnswerCallbacks& watch) {
  AllAnswered all;
  if (answerer.tokenizer().kind() == text::TokenizerKind::bytes) requests.take_any_bytes();
  const std::int64_t alone = requests.regular() ? kBatchOfFiles : 1;
  const std::int64_t most = options.batch > 0 ? options.batch : alone;
  for (auto batch = next(requests, most); !batch.empty(); batch = next(requests, most)) {
    const auto start = Clock::now();
    const auto answers = answerer.answer(batch);
    all.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    std::optional<std::string> fatal;
    for (const auto& answer : answers) {
      all.totals.add(answer);
      if (!answer.error.empty()) {
        if (!options.keep_going) fatal = answer.error;
        if (fatal) break;
        if (watch.wrong) watch.wrong(answer.error);
      }
      out.write(json_line(answer, answerer.tokenizer(), options.per_token));
    }
    if (watch.written) watch.written();
    if (fatal) core::bad_data("{}", *fatal);
    if (watch.progress) watch.progress(all.totals.requests());
  }
  return all;
}

}  // namespace infer
