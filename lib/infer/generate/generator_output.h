#pragma once
// Writes samples as streamed text or as JSON lines, in the order of the prompts.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io.h"
#include "core/options.h"
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

}  // namespace infer
