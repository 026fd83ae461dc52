#include "infer/answers/answer_all.h"

#include <chrono>
#include <optional>
#include <vector>

#include "core/error.h"

namespace infer {
namespace {

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

void AnswerOptions::fields(core::FieldList& f) {
  f("format", format, "format of FILE; auto: jsonl if its first line begins with {, else lines",
    {"auto", "lines", "jsonl"});
  f("per-token", per_token, "print the text and the log-probability of each token");
  f("keep-going", keep_going, "answer the other requests if one is invalid");
  f("batch", batch, "requests per batch; auto: 32 from files, 1 from a pipe")
      .between(1, 1e6)
      .or_auto();
}

AllAnswered answer_all(Answerer& answerer, task::ScoreRequestReader& requests,
                       const AnswerOptions& options, core::ByteSink& out,
                       const AnswerCallbacks& watch) {
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
    if (fatal) core::fail(core::Code::bad_data, "{}", *fatal);
    if (watch.progress) watch.progress(all.totals.requests());
  }
  return all;
}

}  // namespace infer
