#pragma once
// Reads prompts from a file of text lines or JSON lines.
// Converts lines of text to sources of translations.
// Compares words by a model.

#include "core/file_text.h"
#include "infer/generate/generator_options.h"
#include "infer/windows/retriever.h"

namespace infer {

/// A prompt and its own settings; absent settings come from the options.
struct Prompt {
  std::string text;
  std::string origin;                                    ///< file and line, for messages
  std::optional<std::vector<std::int64_t>> tokens = {};  ///< replace the text's tokens
  std::optional<std::string> id;                         ///< any JSON; copied to the output
  std::optional<std::int64_t> max_tokens;
  std::optional<std::vector<std::string>> stop;
  std::optional<double> temperature;
  std::optional<std::uint64_t> seed;  ///< makes the texts independent of the prompt's index
  std::optional<bool> special;        ///< see GeneratorOptions
  core::OrderedJson passages = {};    ///< those that a turn was given; see TurnPassages
  bool whole = false;  ///< rendered by a chat template: special tokens are parsed, and no BOS token
                       ///< is added
};

/// Reads prompts as they arrive, so that lines typed at a terminal are answered one by one. Not
/// thread safe.
class PromptReader {
 public:
  /// Opens a file, which may be compressed. `format`: "lines" (every line is a prompt, also an
  /// empty one, without its newline); "jsonl" (the member `field` of each line, and the settings of
  /// Prompt from members of those names; null means absent, `stop` is a text or a list of texts,
  /// empty lines are skipped); "auto" (jsonl if the path ends in .jsonl before a compression
  /// suffix). Throws Error{no_input} and the errors of shard::open_unpacked().
  PromptReader(const std::string& path, const std::string& format, std::string field);
  /// Reads prompts from a list.
  explicit PromptReader(std::vector<std::string> prompts);
  /// Accepts text lines that are not UTF-8.
  void take_any_bytes() { any_bytes_ = true; }
  /// Formats prompts with `chat`: they are user turns or conversations (member `messages` of a JSON
  /// line). A non-empty `system` message precedes them.
  void talk(text::Chat chat, std::string system);
  /// Makes all lines turns of one conversation, after talk(). next() returns one turn at a time;
  /// call answered() with the model's reply before the next. The reader calls `ask` before each
  /// line.
  void converse(std::function<void()> ask) { ask_ = std::move(ask); }
  bool conversing() const { return ask_ != nullptr; }
  void answered(const std::string& text);

  /// Returns at most `most` prompts that have arrived, at least one; none at the end. Throws
  /// Error{bad_data} that names a line which is not a JSON object with the field, has a member with
  /// an invalid type or value, exceeds 64 MiB, or is not UTF-8.
  std::vector<Prompt> next(std::size_t most);

 private:
  Prompt read(const std::string& line, const std::string& origin) const;
  void say(Prompt& prompt, core::OrderedJson messages) const;

  std::optional<core::LineReader> lines_;
  std::optional<text::Chat> chat_;
  std::string system_;
  std::function<void()> ask_;
  core::OrderedJson turns_ = core::OrderedJson::array();  // turns of the conversation so far
  bool jsonl_ = false, any_bytes_ = false;
  std::string field_;
  std::vector<std::string> given_;
};

/// Options that select the source of prompts.
struct PromptOptions {
  std::string file;
  std::vector<std::string> prompts;  ///< instead of the file; empty: none
  std::string format = "auto", field = "prompt";
  bool chat = false;   ///< see PromptReader::talk()
  std::string system;  ///< message before each conversation
  void fields(core::FieldList& f);

  /// Opens the texts of --prompt, else the file (none: stdin). With `chat`, uses the chat template
  /// of `folder` and its `revision`, if it is set. Throws Error{usage} for both inputs and for
  /// options that conflict with `chat`, and the errors of model::chat_of().
  PromptReader open(const GeneratorOptions& options, const std::string& folder,
      text::Chat::Revision revision = {}) const;

 private:
  PromptReader open_plain() const;
};

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

/// Encodes sources as the pairs of a shard (windows.h): with the end-of-document token e, the
/// source is the line's tokens and e, and the translation starts after e. Not thread safe.
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

/// Returns the vectors of words by a model that load_to_decode() loaded: the mean of the input
/// vectors of a word's tokens, after a space, minus the mean over the vocabulary (4096 tokens at
/// regular distances), as a unit vector. Throws as tokenizer_of().
decltype(TurnModel::words) word_vectors(const model::Loaded& loaded);

}  // namespace infer
