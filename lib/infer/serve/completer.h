#pragma once
// Computes completions for clients, with a model and its memories.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "infer/answers/answerer.h"
#include "infer/generate/generator.h"
#include "serve/api.h"
#include "serve/job_queue.h"
#include "text/chat/chat_template.h"

namespace infer {

struct CompleterOptions {
  std::string model, tokenizer, system;
  std::int64_t likely = 20;
  GeneratorOptions generator;  ///< requests set how tokens are chosen
  MemoryOptions memory;
  nn::DeviceOptions compute;
  void fields(core::FieldList& f);
};

/// Callbacks that give complete() more jobs.
struct JobFeed {
  /// Returns jobs with the memory options `memory` while `rows` rows are free; may return none.
  std::function<std::vector<serve::JobPtr>(std::int64_t rows, const std::string& memory)> next;
  std::function<void()> step = {};  ///< called at each token and each scored window
};

/// Computes completions. Texts are those of Generator and log-probabilities those of Answerer,
/// equal to those of `sample` and `score`. With weights other than float32, the float32 model is
/// loaded when a client first asks for log-probabilities. Not thread safe.
class Completer {
 public:
  /// Loads the model. Throws the errors of Generator and Answerer.
  explicit Completer(const CompleterOptions& options);

  /// Computes the texts of jobs with one memory (JobQueue::next()) and of the jobs that `feed`
  /// gives meanwhile, and reports results and errors to each job as soon as it ends. Returns when
  /// no text is left. The rows of a cancelled job are free for others at once, and its scoring
  /// ends before the next window.
  void complete(const std::vector<serve::JobPtr>& jobs, const JobFeed& feed,
                serve::ServeCounts& counts);
  /// Returns the tokenizer as clients use it.
  const serve::ServedTokenizer& tokens() const { return served_; }
  const std::string& window_note() const { return generator_->window_note(); }

 private:
  struct Text;
  struct Open;
  struct Running;
  bool remember(const std::vector<serve::JobPtr>& jobs);
  void open(Open& open) const;
  std::vector<Arrival> arrivals(Running& running, std::int64_t rows);
  GeneratorCallbacks watch(Running& running);
  void finish(Running& running, std::vector<std::shared_ptr<Open>> jobs);
  void tell_choices(const std::vector<std::shared_ptr<Open>>& jobs, const JobFeed& feed);
  std::vector<serve::CompletionToken> tokens_of(const std::vector<std::int64_t>& all,
                                                std::int64_t from, const TokenScores& scores,
                                                std::int64_t likely) const;
  std::vector<serve::CompletionToken> sent(Text& text, std::int64_t sample,
                                           std::string_view piece) const;
  std::vector<std::size_t> begins_of(const Text& text, const std::vector<std::int64_t>& all) const;
  std::vector<std::int64_t> shown_tokens(const Sample& sample) const;
  std::string text_of(std::int64_t token) const;

  CompleterOptions options_;
  std::optional<Generator> generator_;
  std::optional<Answerer> answerer_;
  serve::ServedTokenizer served_;
  std::string memory_;  // memory options of the last request
};

}  // namespace infer
