#pragma once
// Converts lines of text to sources of translations.

#include "infer/generate/generator_options.h"
#include "text/tokenizer/tokenizer.h"

namespace infer {

/// Start of a text.
struct Start {
  std::uint64_t number;                ///< index of the prompt
  std::vector<std::int64_t> tokens;    ///< tokens that the text continues
  std::vector<std::int64_t> source;    ///< input of an encoder; empty: none
  std::int64_t most;                   ///< maximum tokens to generate
  std::vector<std::string> stop = {};  ///< stop strings of its texts
  DrawOptions draw = {};               ///< of sampling
  LogitRulesPtr logits = {};           ///< null: none
  std::int64_t likely = -1;            ///< see Arrival
  std::uint64_t seed = 0, stream = 0;  ///< sample i uses Rng(seed, stream + i)
};

/// Encodes sources as the pairs of a shard (pairs.h): with the end-of-document token e, the source
/// is the line's tokens and e, and the translation starts after e. Not thread safe.
class SourceReader {
 public:
  /// Limits a source to options.max_source tokens and to `context`, if set. `name` is the model's,
  /// for messages. Throws Error{bad_data} for a tokenizer without an end-of-document token.
  SourceReader(TranslationOptions options, text::TokenizerPtr tokenizer,
      std::optional<std::int64_t> context, const std::string& name);

  /// Returns the start of line `number`, from 0. For x source tokens including e, the translation
  /// has at most floor(a x + b) tokens, at least 1. Throws Error{bad_data} that names a line which
  /// is too long; with options.truncate, keeps its first tokens and calls `warn`.
  Start read(std::uint64_t number, const std::string& line,
      const std::function<void(const std::string&)>& warn) const;

 private:
  TranslationOptions options_;
  text::TokenizerPtr tokenizer_;
  std::int64_t end_ = 0, most_ = 0;
};

}  // namespace infer
