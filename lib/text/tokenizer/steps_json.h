#pragma once
// Writes the parts of a canonical tokenizer.json around the model: added tokens, normalizer,
// splitters, template.
// Writes the canonical JSON of a tokenizer directly, because a document tree of 100,000 nodes takes
// ten times as long. The caller writes keys in sorted order; the bytes equal those of core::dump.

#include "text/tokenizer/split.h"
#include "text/tokenizer/text_steps.h"

namespace text {

/// A JsonText builds one JSON document.
class JsonText {
 public:
  /// Opens an object '{' or a list '['.
  JsonText& open(char bracket) { return raw({&bracket, 1}); }
  JsonText& close(char bracket) { return raw({&bracket, 1}); }
  JsonText& key(std::string_view name);
  /// Begins an item of a list.
  JsonText& item();
  /// Writes a string; `text` is UTF-8.
  JsonText& string(std::string_view text);
  /// Writes a value that is already JSON.
  JsonText& raw(std::string_view json) {
    out_ += json;
    return *this;
  }
  JsonText& number(std::uint64_t value);
  std::string text() && { return std::move(out_); }

 private:
  void comma();
  std::string out_;
};

/// Writes "added_tokens": [...].
void append_special_tokens(JsonText& json, const std::vector<SpecialToken>& tokens);
/// Writes {name: id}, sorted by name, where names[id] is the token's name in the file. Omits the
/// ids of `outside` if it is not empty.
void append_vocabulary(JsonText& json, const Vocabulary& vocabulary,
    const std::vector<std::string>& names, const std::vector<bool>& outside = {});

/// Writes "added_tokens": all of `steps` if it has any, else the special ones.
void append_added_tokens(
    JsonText& json, const TextSteps& steps, const std::vector<SpecialToken>& special);
/// Returns which ids are not in "vocab": added tokens that it did not list, and nameless tokens.
std::vector<bool> outside_vocabulary(const TextSteps& steps, const Vocabulary& vocabulary);
/// Writes "normalizer": null, a step or a sequence of steps.
void append_normalizer(JsonText& json, const Normalizer& normalizer);
/// Writes "pre_tokenizer" of a tokenizer.model for other readers of the file: the prefix that a
/// text gets once, and a split at the pattern of the symbols.
void append_rules_split(JsonText& json, const TextSteps& steps, const std::string& pattern);
/// Writes one step of a pre-tokenizer.
void append_split_step(JsonText& json, const SplitStep& step);
/// Writes "post_processor": null or the template.
void append_template(JsonText& json, const Tokenizer& tokenizer);

}  // namespace text
