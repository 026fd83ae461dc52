#pragma once
// The texts of one job: from the generator's and the scorer's results to what its client is sent.
// Memory options that a request may change.

#include "infer/answers/answer.h"
#include "infer/generate/generator.h"
#include "serve/job_queue.h"

namespace infer {

/// Returns `started` with the changes of `asked`, a JSON object whose members are memory options
/// named as in `--help` ('_' for '-'), and with these members as `chosen`. Lists of files can only
/// be emptied: [], which leaves the source out (SourceKind::drop()). Throws Error{usage} that names
/// a member which is unknown, names a file or has an invalid value.
MemoryOptions request_memory(const MemoryOptions& started, const std::string& asked);

/// Collects the texts of a job whose prompts have tokens, and reports them as they come. Its texts
/// are numbered by their prompt and sample. Not thread safe.
class OpenJob {
 public:
  OpenJob(serve::JobPtr job, text::TokenizerPtr tokenizer);

  const serve::CompletionRequest& request() const { return job_->request; }
  bool cancelled() const { return job_->cancelled(); }
  void fail(int status, const std::string& text) { job_->fail(status, text); }

  /// Returns a prompt with the request's settings.
  Arrival arrival(std::size_t prompt) const;
  /// Takes results of a text; see GeneratorCallbacks.
  void piece(std::size_t prompt, std::int64_t sample, std::string_view piece);
  void tokens(std::size_t prompt, std::int64_t sample, std::span<const GrownToken> tokens);
  void finished(std::size_t prompt, const Sample& sample);
  /// Returns whether all texts are generated.
  bool generated() const { return left_ == 0; }

  /// Returns the tokens of the texts that a second pass scores: with log-probabilities, unless a
  /// stream has sent them.
  std::vector<std::vector<std::int64_t>> to_score() const;
  /// Tells the choices and the end. `scores` are those of to_score(). `cite`: adds citations.
  void send(std::span<const TokenScores> scores, bool cite);
  const serve::CompletionUsage& usage() const { return usage_; }

 private:
  struct Text {
    Sample sample;
    bool finished = false;
    // What a stream has sent.
    std::string sent = {};
    std::vector<serve::CompletionToken> tokens = {};  // of the next piece
    std::vector<std::size_t> begins = {};             // of these, in bytes
    serve::CharacterCount characters = {};
  };
  bool streams_tokens() const;
  bool wants_scores() const { return request().logprobs && !streams_tokens(); }
  Text& text(std::size_t prompt, std::int64_t sample);
  const serve::CompletionPrompt& prompt_of(std::size_t text) const;
  std::int64_t index_of(const Text& text) const { return &text - texts_.data(); }
  std::string text_of(std::int64_t token) const;
  std::vector<std::int64_t> tokens_of(std::size_t text) const;
  std::vector<serve::CompletionToken> told_tokens(Text& text, std::string_view piece);
  std::vector<std::size_t> begins_of(std::size_t text, const std::vector<std::int64_t>& all) const;
  std::vector<serve::CompletionToken> scored_tokens(
      std::size_t text, const TokenScores& scores, std::string_view sent) const;

  serve::JobPtr job_;
  text::TokenizerPtr tokenizer_;
  std::vector<Text> texts_;  // of each prompt's samples
  std::int64_t left_;
  serve::CompletionUsage usage_;
};

}  // namespace infer
