#pragma once
// Computes completions for clients, with a model and its memories.

#include "infer/answers/answerer.h"
#include "infer/generate/generator.h"
#include "serve/api.h"

namespace infer {

struct CompleterOptions {
  std::string model, tokenizer, system;
  std::int64_t likely = 20;
  std::int64_t kept = 4;       ///< computed prompts to keep, see Session::keep()
  GeneratorOptions generator;  ///< requests set how tokens are chosen
  RetrieveOptions retrieve;    ///< of conversations
  TurnOptions turns;
  MemoryOptions memory;
  nn::DeviceOptions compute;
  void fields(core::FieldList& f);
};

/// Computes completions. Texts are those of Generator and log-probabilities those of Answerer,
/// equal to those of `sample` and `score` with the same weights. Not thread safe.
class Completer {
 public:
  /// Loads the model. Throws the errors of Generator and Answerer.
  explicit Completer(const CompleterOptions& options);
  ~Completer();

  /// Computes the jobs of a queue until it is closed and no job is left, and reports results and
  /// errors to each job as soon as it ends. Calls `look`, which may close the queue, several times
  /// a second and between any two pieces of work. The work is done in pieces of bounded time: a
  /// token of each text, a part of the prompts that are read, a part of a text that is scored.
  /// Texts with different memories are generated in turns, with at most four memories; jobs with
  /// further ones wait, but not the jobs behind them. The rows of a cancelled job are free for
  /// others at once.
  void run(serve::JobQueue& queue, serve::ServeCounts& counts, const std::function<void()>& look);
  /// Returns the tokenizer as clients use it.
  const serve::ServedTokenizer& tokens() const { return served_; }
  const std::string& window_note() const;

 private:
  struct Open;
  struct Lane;
  struct Run;
  MemoryOptions memory_of(const std::string& asked) const;
  Generator make_generator() const;

  CompleterOptions options_;
  torch::Device device_;
  model::Loaded loaded_;
  std::optional<Answerer> answerer_;
  serve::ServedTokenizer served_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the first has the server's memory
  Pace::Sizes sizes_;                         // of scoring
};

}  // namespace infer
