#pragma once
// Continues all prompts of a reader batch by batch and writes the samples (program sample).
// Writes samples as streamed text or as JSON lines, in the order of the prompts.

#include "infer/generate/generator.h"

namespace infer {

struct OutputOptions {
  bool json = false;
  bool echo = false;                ///< text: prints the prompt before its continuation
  std::string separator;            ///< text: a line between texts; empty: none
  void fields(core::FieldList& f);  ///< except json, which has no flag here
};

/// Writes samples. Text: each text and a newline; the first unfinished text streams piece by piece,
/// and later ones wait for it. JSON lines: {"id" if the prompt has one, "prompt", "sample", "text",
/// "tokens", "log_prob", "finish"}, plus "memories" with memories, "citations" with citations and
/// "spans" with copied spans; bytes that are not UTF-8 become U+FFFD. Not thread safe.
class SampleOutput {
 public:
  /// Expects `samples` texts for each prompt. Calls `flush` after each written piece.
  SampleOutput(core::ByteSink& sink, OutputOptions options, std::int64_t samples,
      std::function<void()> flush);
  /// Adds the next prompts; indices continue.
  void begin(std::vector<Prompt> prompts);
  void piece(std::uint64_t prompt, std::int64_t sample, std::string_view piece);
  void finished(const Sample& sample);
  /// Ends the text being written and discards waiting texts.
  void cut();
  /// Announces that all prompts so far are complete.
  void end();

 private:
  using Key = std::pair<std::uint64_t, std::int64_t>;  // prompt, sample
  struct Held {
    std::string text;  // text or JSON line
    bool whole = false;
  };
  void pass_on();
  void open(const Key& key);
  void close();

  core::ByteSink& sink_;
  OutputOptions options_;
  std::int64_t samples_;
  std::function<void()> flush_;
  std::map<std::uint64_t, Prompt> prompts_;
  std::map<Key, Held> held_;
  Key next_{0, 0};
  bool open_ = false, any_ = false;
  std::uint64_t begun_ = 0;
};

struct SampledTotals {
  std::uint64_t texts = 0, steps = 0;  ///< a step is one token of one text
  double seconds = 0;                  ///< excludes the time spent waiting for prompts
  SearchCounts searches = {};          ///< datastore lookups
  std::uint64_t spans = 0, taken = 0;  ///< proposed spans, and tokens copied from them
  std::vector<std::pair<std::string, double>> given = {};  ///< tokens from memories; see Sample
  std::uint64_t tokens = 0;                                ///< of texts that were not stopped
  std::uint64_t turns = 0, with_passages = 0;  ///< turns for which passages were looked for

  std::string summary() const;  ///< one line
  /// Returns one line with how much each memory gave; empty if there is none.
  std::string from_memories() const;
  /// Returns {"texts", "tokens", "seconds", "tokens_per_s", "searches": {"made", "followed",
  /// "skipped"}, "spans": {"proposed", "tokens", "tokens_per_span"}}, and "memories": {NAME: the
  /// fraction of the tokens}.
  core::OrderedJson figures() const;
};

/// Callbacks of sample_all().
struct SampleCallbacks {
  std::function<void(const Sample&)> finished = {};
  std::function<void(const std::string&)> warn =
      {};  ///< see GeneratorCallbacks; also notes about the
           ///< window
  std::function<void(std::uint64_t steps)> progress = {};  ///< total so far; may throw
  std::function<void(const std::string&)> checked = {};    ///< receives Generator::engine_error(),
                                                           ///< once
  /// Of a conversation: turn() is called when an answer begins and ends; stops() returns whether to
  /// stop the answer.
  std::function<void(bool begins)> turn = {};
  std::function<bool()> stops = {};
};

/// Continues all prompts. For translations, reads more sources than one batch, so that sources of
/// similar length are decoded together. Throws the errors of PromptReader::next() and
/// Generator::run().
SampledTotals sample_all(Generator& generator, PromptReader& prompts, SampleOutput& output,
    const SampleCallbacks& watch);

}  // namespace infer
