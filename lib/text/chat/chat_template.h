#pragma once
// Renders chat templates, which turn the messages of a conversation into the text format that a
// model was trained on. A template is a program in the part of Jinja that the templates of
// transformers use (tessera-chat(7)). Templates are untrusted, so their time and memory are
// bounded.

#include <ctime>

#include "core/hash.h"
#include "core/json.h"

namespace text {

/// ChatLimits bounds the work of a rendering, in addition to work proportional to the size of the
/// template and its variables.
struct ChatLimits {
  std::size_t steps = 10'000'000;
  std::size_t bytes = std::size_t{16} << 20;  ///< of any one text
};

/// A ChatTemplate is a parsed template. Const calls are thread safe.
class ChatTemplate {
 public:
  /// Parses a template. `origin` names it in messages. Throws Error{bad_data}, naming origin and
  /// line, for a syntax error and for unsupported parts of Jinja.
  ChatTemplate(std::string source, std::string origin);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Renders the template with an object of variables. `now` is the time that strftime_now()
  /// formats. Throws Error{bad_data}, naming origin and line, for a call of raise_exception(), a
  /// value of the wrong type, an unsupported feature, and too many steps or bytes.
  std::string render(
      const core::OrderedJson& variables, std::time_t now, const ChatLimits& limits = {}) const;
  const std::string& source() const { return source_; }

 private:
  struct Parsed;
  std::string source_, origin_;
  std::unique_ptr<const Parsed> parsed_;
};

/// A Chat is a model's chat template together with the texts of its special tokens.
class Chat {
 public:
  /// Reads the template of a model's folder: chat_template.jinja, else "chat_template" in
  /// tokenizer_config.json, which is a text or a list of {"name", "template"} with an entry named
  /// `default`. Returns nothing if there is none. Throws Error{bad_data}.
  static std::optional<Chat> of_folder(const std::string& folder);
  /// Behaves like of_folder(), but throws Error{bad_data}, saying what to do, if there is no
  /// template.
  static Chat in_folder(const std::string& folder);
  Chat(ChatTemplate chat_template, core::OrderedJson tokens)
      : template_(std::move(chat_template)), tokens_(std::move(tokens)) {}

  /// A Revision changes the messages that prompt() has checked, before it writes them, and returns
  /// a description of what it changed. Several threads may call it at once.
  using Revision = std::function<core::OrderedJson(core::OrderedJson& messages)>;
  void revise_by(Revision revise) { revise_ = std::move(revise); }

  /// Returns the text of a conversation up to the point where an answer begins. `messages` is an
  /// array of messages. If `system` is not empty, a system message with this text precedes them.
  /// A "content" that is a list of {"type": "text", "text"} becomes one text with a line for each.
  /// `origin` names the messages in errors. `revised` receives the description of the revision.
  /// Throws Error{bad_data} unless `messages` is an array of objects with a "role" and such a
  /// content, and as ChatTemplate::render() and the revision do.
  std::string prompt(core::OrderedJson messages, const std::string& system,
      const std::string& origin, core::OrderedJson* revised = nullptr) const;
  /// A Part of a conversation is either an answer of the assistant, from the end of its prompt() to
  /// the end of the turn, or the text between answers. parts() splits a whole conversation into
  /// parts. It throws as prompt() does, and Error{bad_data} for a template that renders a turn
  /// differently once others follow, and for a conversation without an answer.
  struct Part {
    std::string text;
    bool answer;
  };
  std::vector<Part> parts(const core::OrderedJson& given, const std::string& origin) const;
  const std::string& source() const { return template_.source(); }
  /// Returns a fingerprint of the template and its special tokens.
  core::Digest fingerprint() const;

 private:
  /// Renders the messages; with `asks`, up to the point where an answer begins.
  std::string write(core::OrderedJson messages, bool asks, const std::string& origin) const;

  ChatTemplate template_;
  core::OrderedJson tokens_;  // bos_token and the like
  Revision revise_ = {};
};

/// Parses a conversation; members keep their order. Throws Error{bad_data}, naming `origin`.
core::OrderedJson parse_messages(const std::string& json, const std::string& origin);
/// Returns a conversation with one user message.
core::OrderedJson user_turn(const std::string& text);

}  // namespace text
