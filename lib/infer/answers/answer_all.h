#pragma once
// Answers all requests of a reader batch by batch and writes the answers (program score).

#include <cstdint>
#include <functional>
#include <string>

#include "core/io.h"
#include "core/options.h"
#include "infer/answers/answer_totals.h"
#include "infer/answers/answerer.h"
#include "task/score_request.h"

namespace infer {

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
                       const AnswerOptions& options, core::ByteSink& out,
                       const AnswerCallbacks& watch);

}  // namespace infer
