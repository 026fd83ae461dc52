#pragma once
// Chat templates: how the messages of a conversation become the text that a model was trained
// with. A template is a program in the part of Jinja that the templates of transformers use
// (man 7 tessera-chat); it comes from a stranger, so what it may take is bounded.

#include <cstddef>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/json.h"

namespace text {

/// What rendering may take beside what grows with the template and its variables.
struct ChatLimits {
  std::size_t steps = 10'000'000;
  std::size_t bytes = std::size_t{16} << 20;  ///< of one text
};

/// Const calls are thread safe.
class ChatTemplate {
 public:
  /// `origin` names it in messages. Throws Error{bad_data} naming origin and line for what is no
  /// template and for parts of Jinja that are not supported.
  ChatTemplate(std::string source, std::string origin);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The text for an object of variables. `now`: what strftime_now() tells. Throws Error{bad_data}
  /// naming origin and line: what raise_exception() says, a value of a wrong type, something that
  /// is not supported, too many steps or bytes.
  std::string render(const core::OrderedJson& variables, std::time_t now,
                     const ChatLimits& limits = {}) const;
  const std::string& source() const { return source_; }

 private:
  struct Parsed;
  std::string source_, origin_;
  std::unique_ptr<const Parsed> parsed_;
};

/// A model's template with the texts of its special tokens.
class Chat {
 public:
  /// That of the folder's chat_template.jinja, else of "chat_template" in its
  /// tokenizer_config.json: a text, or of a list of {"name", "template"} the one named `default`.
  /// Nothing where there is none. Throws Error{bad_data}.
  static std::optional<Chat> of_folder(const std::string& folder);
  /// The same. Throws Error{bad_data} where there is none, saying what to do.
  static Chat in_folder(const std::string& folder);
  Chat(ChatTemplate chat_template, core::OrderedJson tokens)
      : template_(std::move(chat_template)), tokens_(std::move(tokens)) {}

  /// The text of a conversation, an array of messages, up to where an answer begins; with `system`
  /// not empty behind a system message. `origin` names the messages in errors. Throws
  /// Error{bad_data} for messages that are no array of objects with a "role", and as
  /// ChatTemplate::render() does.
  std::string prompt(core::OrderedJson messages, const std::string& system,
                     const std::string& origin) const;
  /// The text of a whole conversation in parts: what assistants answer, from where prompt() ends to
  /// the end of the turn, and what stands between. Throws as prompt(), and Error{bad_data} for a
  /// template that writes a turn otherwise once others follow, or none to answer.
  struct Part {
    std::string text;
    bool answer;
  };
  std::vector<Part> parts(const core::OrderedJson& messages, const std::string& origin) const;
  const std::string& source() const { return template_.source(); }
  /// Of the template and its tokens.
  core::Digest fingerprint() const;

 private:
  /// `asks`: up to where an answer begins.
  std::string write(core::OrderedJson messages, bool asks, const std::string& origin) const;

  ChatTemplate template_;
  core::OrderedJson tokens_;  // bos_token and the like
};

/// A conversation as JSON, its members in their order. Throws Error{bad_data} naming `origin`.
core::OrderedJson parse_messages(const std::string& json, const std::string& origin);
/// The conversation of one user's turn.
core::OrderedJson user_turn(const std::string& text);

}  // namespace text
