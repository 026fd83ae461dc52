#pragma once
// Writes a canonical tokenizer.json: sorted keys, as core::dump writes them. The large parts,
// vocabulary and merges, are written directly, because a document tree of 100,000 nodes takes ten
// times as long. The other parts are values.

#include "core/json.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/text_steps.h"

namespace text {

/// A JsonText builds one JSON document. The caller writes keys in sorted order.
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
  JsonText& number(std::uint64_t value) { return raw(std::to_string(value)); }
  std::string text() && { return std::move(out_); }

 private:
  std::string out_;
};

/// Returns each id's token, which is its name in the file.
std::vector<std::string> names_of(const Tokenizer& tokenizer);
/// Returns {name: id}, sorted by name, where names[id] is the token's name in the file. Omits added
/// tokens of `steps` that "vocab" did not list, and nameless tokens.
std::string vocabulary_text(const Vocabulary& vocabulary, const std::vector<std::string>& names,
    const TextSteps& steps = {});
/// Returns the merges, each as one string "a b", or as a list if that is not clear or if `lists`.
std::string merges_text(
    const std::vector<Merge>& merges, const std::vector<std::string>& names, bool lists = false);
/// Returns the members of a BPE model but its vocabulary and merges: `own`, and others as they are
/// without them.
core::Json bpe_model(const core::Json& own);
/// Returns a tokenizer.json. `parts` are its members but the model and the template, `model` the
/// model's; `large` are further members of the model as JSON.
std::string tokenizer_text(const Tokenizer& tokenizer, core::Json parts, const core::Json& model,
    std::map<std::string, std::string> large);

/// Returns "added_tokens": all of `steps` if it has any, else the special ones.
core::Json added_tokens_json(const TextSteps& steps, const std::vector<SpecialToken>& special);
/// Returns null, the only step, or a sequence that has the steps under `list`.
core::Json sequence_json(const char* list, std::vector<core::Json> steps);
/// Returns "normalizer".
core::Json normalizer_json(const Normalizer& normalizer);
/// Returns "pre_tokenizer" of a tokenizer.model for other readers of the file: the prefix that a
/// text gets once, and a split at the pattern of the symbols.
core::Json rules_split_json(const TextSteps& steps, const std::string& pattern);
/// Returns one step of a pre-tokenizer.
core::Json split_step_json(const SplitStep& step);

}  // namespace text
