#pragma once
// Answers all requests of a reader batch by batch and writes the answers (program score).
// Aggregate statistics over all answers.

#include "infer/answers/answerer.h"
#include "infer/score/report.h"

namespace infer {

class AnswerTotals {
 public:
  void add(const Answer& answer);
  std::uint64_t requests() const { return requests_; }
  std::uint64_t errors() const { return errors_; }

  /// Returns {"requests", "errors", "loss", "perplexity", "bits_per_byte", "tokens", "bytes",
  /// "questions", and, if applicable, "greedy" and each rule, with "_low" and "_high" of the
  /// confidence interval}. Loss to bytes cover texts and continuations. "greedy" is the fraction of
  /// continuations that greedy decoding would produce. A rule's value is the fraction of questions
  /// with a gold choice that the rule answers correctly.
  core::OrderedJson figures() const;
  /// Returns the statistics as one line of text.
  std::string summary() const;

 private:
  std::vector<std::pair<std::string, task::Accuracy>> accuracies() const;

  std::uint64_t requests_ = 0, errors_ = 0, questions_ = 0;
  Totals totals_;
  std::vector<bool> greedy_;                                      // of each continuation
  std::vector<std::pair<std::string, std::vector<bool>>> right_;  // by rule
};

struct AnswerOptions {
  std::string format = "auto";  ///< format of the requests; see task::ScoreRequestReader
  std::int64_t batch = 0;       ///< requests per batch; 0: 32 for files, 1 for a pipe
  bool per_token = false;
  bool keep_going = false;  ///< answers an invalid request with its error and continues
  void fields(core::FieldList& f);
};

/// Callbacks of answer_all().
struct AnswerCallbacks {
  std::function<void()> written = {};                  ///< after each batch
  std::function<void(const std::string&)> wrong = {};  ///< reason of an invalid request, with
                                                       ///< keep_going
  std::function<void(std::uint64_t requests)> progress = {};
};

struct AllAnswered {
  AnswerTotals totals;
  double seconds = 0;  ///< excludes the time spent waiting for requests
};

/// Writes a line (json_line) for each request. An invalid request without keep_going throws
/// Error{bad_data} after the lines of earlier requests are written. Also throws the errors of
/// ScoreRequestReader::next() and Answerer::answer().
AllAnswered answer_all(Answerer& answerer, task::ScoreRequestReader& requests,
    const AnswerOptions& options, core::ByteSink& out, const AnswerCallbacks& watch);

}  // namespace infer
