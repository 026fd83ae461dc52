#pragma once
// Samples as they are printed: texts that stream, or JSON lines, in the order of the prompts.

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
  bool echo = false;                ///< text: the prompt before its continuation
  std::string separator;            ///< text: a line between texts; empty: none
  void fields(core::FieldList& f);  ///< but for json, which is no flag of its own
};

/// Text: each text and a newline; the first that is not finished comes piece by piece, those after
/// it are held until it is. JSON lines: {"id" where the prompt has one, "prompt", "sample", "text",
/// "tokens", "log_prob", "finish"} and with citations "citations", with spans that were taken
/// "spans", bytes that are not UTF-8 become U+FFFD. Not thread safe.
class SampleOutput {
 public:
  /// `samples` of each prompt are expected. `flush` is called after each piece written.
  SampleOutput(core::ByteSink& sink, OutputOptions options, std::int64_t samples,
               std::function<void()> flush);
  /// The prompts that come next, numbered on from the last ones.
  void begin(std::vector<Prompt> prompts);
  void piece(std::uint64_t prompt, std::int64_t sample, std::string_view piece);
  void finished(const Sample& sample);
  /// What is being written ends here, and what was held is not written.
  void cut();
  /// All of the prompts begun have got what they get.
  void end();

 private:
  using Key = std::pair<std::uint64_t, std::int64_t>;  // prompt, sample
  struct Held {
    std::string text;  // or the JSON line
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
