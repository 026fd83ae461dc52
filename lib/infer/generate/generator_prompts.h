#pragma once
// Prompts out of a file: one a line, or one a JSON line.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/line_reader.h"
#include "core/options.h"
#include "text/chat/chat_template.h"

namespace infer {

/// A prompt, and what its line says of its own texts; what is absent is as the options say.
struct Prompt {
  std::string text;
  std::string origin;                                    ///< file and line, for messages
  std::optional<std::vector<std::int64_t>> tokens = {};  ///< in the place of the text's
  std::optional<std::string> id;  ///< any JSON; comes back with the texts as it was given
  std::optional<std::int64_t> max_tokens;
  std::optional<std::vector<std::string>> stop;
  std::optional<double> temperature;
  std::optional<std::uint64_t> seed;  ///< the texts do not depend on the prompt's number then
  std::optional<bool> special;        ///< see GeneratorOptions
  bool whole = false;  ///< the text of a chat template: its special tokens are parsed, and nothing
                       ///< stands before it
};

/// Reads prompts as they arrive, so that lines typed at a terminal are answered one by one. Not
/// thread safe.
class PromptReader {
 public:
  /// `format`: lines (every line is a prompt, an empty one too; its newline is not part of it),
  /// jsonl (the member `field` of each line, and of Prompt the members of those names, where null
  /// is absent and `stop` is a text or a list of them; empty lines are passed over), auto (jsonl if
  /// the path ends in .jsonl, compressed or not). A file may be compressed. Throws Error{no_input}
  /// and as shard::open_unpacked() does.
  PromptReader(const std::string& path, const std::string& format, std::string field);
  /// Given texts, not a file.
  explicit PromptReader(std::vector<std::string> prompts);
  /// Lines of text need not be UTF-8.
  void take_any_bytes() { any_bytes_ = true; }
  /// Prompts are turns of a user, or conversations (the member `messages` of a JSON line): their
  /// texts are what `chat` makes of them, `system` before them where it is not empty.
  void talk(text::Chat chat, std::string system);
  /// After talk(): all lines are turns of one conversation, and next() gives one at a time, after
  /// answered() has told what the model said to the one before. `ask` is called before each line is
  /// read.
  void converse(std::function<void()> ask);
  bool conversing() const { return ask_ != nullptr; }
  void answered(const std::string& text);

  /// At most `most` prompts: those that have arrived, at least one; none at the end. Throws
  /// Error{bad_data} naming the line that is no JSON object with the field, that has a member of
  /// another type or out of its range, or that is longer than 64 MiB, or that is not UTF-8.
  std::vector<Prompt> next(std::size_t most);

 private:
  Prompt read(const std::string& line, const std::string& origin) const;
  void say(Prompt& prompt, core::OrderedJson messages) const;

  std::optional<core::LineReader> lines_;
  std::optional<text::Chat> chat_;
  std::string system_;
  std::function<void()> ask_;
  core::OrderedJson turns_ = core::OrderedJson::array();  // of the conversation so far
  bool jsonl_ = false, any_bytes_ = false;
  std::string field_;
  std::vector<std::string> given_;
};

/// Where prompts come from, as options say it.
struct PromptOptions {
  std::string file, prompt;
  std::string format = "auto", field = "prompt";
  bool chat = false;   ///< see PromptReader::talk()
  std::string system;  ///< message before each conversation
  void fields(core::FieldList& f);

  /// The text of --prompt if it is among the `given`, else the file (none is stdin). With `chat`
  /// they talk by the template of `folder`. Throws Error{usage} for both, and for what does not go
  /// with `chat`; and as model::chat_of() does.
  PromptReader open(const std::set<std::string>& given, const std::string& folder) const;

 private:
  PromptReader open_plain(const std::set<std::string>& given) const;
};

}  // namespace infer
