// Reads tokenizer.json files, ours and others'.

#include <simdjson.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "text/byte_alphabet.h"
#include "text/byte_level.h"
#include "text/gpt2_split.h"
#include "text/tokenizer.h"
#include "text/units.h"
#include "text/word_level.h"

namespace text {
namespace {

using core::Code;
using core::fail;
using simdjson::dom::element;

constexpr std::size_t kMaxDepth = 64;
// GPT-2's pattern as others write it.
constexpr std::string_view kPatterns[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
};

// One tokenizer.json, with the name that errors carry.
class File {
 public:
  File(element root, std::string origin) : root_(root), origin_(std::move(origin)) {}

  element root() const { return root_; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Code::bad_data, "{}: {}", origin_, fmt::format(format, std::forward<Args>(args)...));
  }

  // A member; nothing if it is absent or null.
  std::optional<element> find(element object, std::string_view key) const {
    element found;
    if (object.at_key(key).get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
    return found;
  }
  std::string_view text(element object, std::string_view key, std::string_view otherwise) const {
    const auto found = find(object, key);
    if (!found) return otherwise;
    std::string_view value;
    if (found->get(value) != simdjson::SUCCESS) refuse("\"{}\" is not a string", key);
    return value;
  }
  bool flag(element object, std::string_view key, bool otherwise) const {
    const auto found = find(object, key);
    if (!found) return otherwise;
    bool value = false;
    if (found->get(value) != simdjson::SUCCESS) refuse("\"{}\" is not true or false", key);
    return value;
  }
  simdjson::dom::array list(element object, std::string_view key) const {
    const auto found = find(object, key);
    simdjson::dom::array value;
    if (!found || found->get(value) != simdjson::SUCCESS) refuse("no list \"{}\"", key);
    return value;
  }
  std::uint32_t id(element value) const {
    std::uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number >= kMaxIds)
      refuse("a token's id is not a number below {}", kMaxIds);
    return static_cast<std::uint32_t>(number);
  }
  static constexpr std::uint64_t kMaxIds = MergeTable::kMaxIds;

 private:
  element root_;
  std::string origin_;
};

std::vector<SpecialToken> read_special(const File& file) {
  std::vector<SpecialToken> tokens;
  if (!file.find(file.root(), "added_tokens")) return tokens;
  for (const element entry : file.list(file.root(), "added_tokens")) {
    const auto id = file.find(entry, "id");
    const std::string_view content = file.text(entry, "content", "");
    if (!id || content.empty()) file.refuse("an added token without id or content");
    if (!file.flag(entry, "special", false))
      file.refuse("added token {} is not special; such tokens are not supported", content);
    tokens.push_back({file.id(*id), std::string(content)});
  }
  return tokens;
}

// The model's vocabulary, each name made a token by `convert(name)`, and the special tokens.
template <class Convert>
Vocabulary read_vocabulary(const File& file, element model,
                           const std::vector<SpecialToken>& special, Convert convert) {
  const auto found = file.find(model, "vocab");
  simdjson::dom::object names;
  if (!found || found->get(names) != simdjson::SUCCESS) file.refuse("no object \"vocab\"");
  Vocabulary vocabulary;
  std::size_t n = special.size();
  for ([[maybe_unused]] const auto& entry : names) ++n;
  vocabulary.reserve(n, 0);
  const auto put = [&](std::uint32_t id, std::string_view token) {
    // Gaps are for tokens that were taken out, not for absurd ids.
    if (id > 2 * n + 65536) file.refuse("id {} in a vocabulary of {} tokens", id, n);
    if (!vocabulary.set(id, token)) file.refuse("id {} or its token is there twice", id);
  };
  for (const auto& [name, value] : names) put(file.id(value), convert(name));
  for (const auto& token : special) {
    if (vocabulary.token(token.id) == token.content) continue;
    if (vocabulary.has(token.id))
      file.refuse("id {} is {} and another token", token.id, token.content);
    put(token.id, token.content);
  }
  return vocabulary;
}

bool is_gpt2_pattern(const File& file, element split) {
  const auto pattern = file.find(split, "pattern");
  if (!pattern || file.text(split, "behavior", "") != "Isolated" ||
      file.flag(split, "invert", false))
    return false;
  const std::string_view regex = file.text(*pattern, "Regex", "");
  return std::find(std::begin(kPatterns), std::end(kPatterns), regex) != std::end(kPatterns);
}

// True if the text is split by GPT-2's pattern, false if it is not split at all.
bool read_byte_level_split(const File& file) {
  const auto step = file.find(file.root(), "pre_tokenizer");
  if (!step) file.refuse("BPE without the ByteLevel pre-tokenizer is not supported");
  std::vector<element> steps{*step};
  if (file.text(*step, "type", "") == "Sequence") {
    steps.clear();
    for (const element inner : file.list(*step, "pretokenizers")) steps.push_back(inner);
  }
  bool split = false;
  for (const element inner : steps) {
    const std::string_view type = file.text(inner, "type", "");
    if (type == "Split" && is_gpt2_pattern(file, inner) && !split) {
      split = true;
    } else if (type == "ByteLevel") {
      if (file.flag(inner, "add_prefix_space", true))
        file.refuse("ByteLevel with add_prefix_space is not supported");
      return split || file.flag(inner, "use_regex", true);
    } else {
      file.refuse("pre-tokenizer {} is not supported here (only GPT-2's ByteLevel is)", type);
    }
  }
  file.refuse("BPE without the ByteLevel pre-tokenizer is not supported");
}

std::uint32_t merge_part(const File& file, const Vocabulary& vocabulary, std::size_t number,
                         const std::string& bytes) {
  const auto id = vocabulary.id_of(bytes);
  if (!id) file.refuse("merge {} makes or takes a token that is not in the vocabulary", number);
  return *id;
}

// `convert(name)` makes a token of a name in the file, nothing of a damaged one.
template <class Convert>
std::vector<Merge> read_merges(const File& file, element model, const Vocabulary& vocabulary,
                               Convert convert) {
  std::vector<Merge> merges;
  const auto as_token = [&](std::string_view name) {
    std::optional<std::string> token = convert(name);
    if (!token || token->empty()) file.refuse("merge {} is damaged", merges.size());
    return *std::move(token);
  };
  for (const element entry : file.list(model, "merges")) {
    std::string_view left, right, pair;
    simdjson::dom::array parts;
    if (entry.get(pair) == simdjson::SUCCESS) {
      const std::size_t space = pair.find(' ');
      if (space == pair.npos) file.refuse("merge {} is damaged", merges.size());
      left = pair.substr(0, space);
      right = pair.substr(space + 1);
    } else if (entry.get(parts) != simdjson::SUCCESS || parts.size() != 2 ||
               parts.at(0).get(left) != simdjson::SUCCESS ||
               parts.at(1).get(right) != simdjson::SUCCESS) {
      file.refuse("merge {} is damaged", merges.size());
    }
    const std::string a = as_token(left), b = as_token(right);
    merges.push_back({merge_part(file, vocabulary, merges.size(), a),
                      merge_part(file, vocabulary, merges.size(), b),
                      merge_part(file, vocabulary, merges.size(), a + b)});
  }
  return merges;
}

void refuse_set(const File& file, element model, std::string_view key) {
  const auto found = file.find(model, key);
  double number = 0;
  std::string_view text;
  bool flag = false;
  const bool empty = !found || (found->get(number) == simdjson::SUCCESS && number == 0) ||
                     (found->get(text) == simdjson::SUCCESS && text.empty()) ||
                     (found->get(flag) == simdjson::SUCCESS && !flag);
  if (!empty) file.refuse("BPE with \"{}\" is not supported", key);
}

TokenizerPtr read_units(const File& file, element model) {
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "byte_fallback", "fuse_unk", "ignore_merges"})
    refuse_set(file, model, key);
  const auto split = file.find(file.root(), "pre_tokenizer");
  if (file.text(model, "end_of_word_suffix", "") != Units::kEndOfWord || !split ||
      file.text(*split, "type", "") != "WhitespaceSplit" || file.find(file.root(), "normalizer"))
    file.refuse("BPE with \"end_of_word_suffix\" is supported with </w> and WhitespaceSplit only");
  // Merges are written with a space between their sides.
  const auto as_is = [](std::string_view name) {
    return name.find(' ') == name.npos ? std::optional(std::string(name)) : std::nullopt;
  };
  auto special = read_special(file);
  auto vocabulary = read_vocabulary(file, model, special,
                                    [](std::string_view name) { return std::string(name); });
  auto merges = read_merges(file, model, vocabulary, as_is);
  return std::make_shared<Units>(std::move(vocabulary), std::move(merges), std::move(special),
                                 std::string(file.text(model, "unk_token", "")));
}

TokenizerPtr read_bpe(const File& file, element model) {
  if (!file.text(model, "end_of_word_suffix", "").empty()) return read_units(file, model);
  for (const char* key : {"dropout", "continuing_subword_prefix", "byte_fallback"})
    refuse_set(file, model, key);
  if (file.find(file.root(), "normalizer")) file.refuse("BPE with a normalizer is not supported");
  const bool split = read_byte_level_split(file);
  auto special = read_special(file);
  std::map<std::string_view, std::uint32_t> marks;
  for (const auto& token : special) marks.emplace(token.content, token.id);
  auto vocabulary = read_vocabulary(file, model, special, [&](std::string_view name) {
    if (marks.count(name)) return std::string(name);
    auto bytes = bytes_of_alphabet(name);
    if (!bytes) file.refuse("token {} is not of GPT-2's byte alphabet", name);
    return *std::move(bytes);
  });
  auto merges = read_merges(file, model, vocabulary, bytes_of_alphabet);
  const bool whole_words = file.flag(model, "ignore_merges", false);
  if (!split && (whole_words || !merges.empty()))
    file.refuse("BPE without GPT-2's pattern (use_regex false) is not supported");
  if (!file.text(model, "unk_token", "").empty()) {
    for (int b = 0; b < 256; ++b) {
      const char c = static_cast<char>(b);
      if (!vocabulary.id_of({&c, 1}))
        file.refuse("BPE with unknown bytes (unk_token) is not supported");
    }
  }
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::move(merges), std::move(special),
                                     whole_words);
}

TokenizerPtr read_word_level(const File& file, element model) {
  WordLevel::Options options;
  options.unknown = std::string(file.text(model, "unk_token", ""));
  const auto split = file.find(file.root(), "pre_tokenizer");
  const auto normalizer = file.find(file.root(), "normalizer");
  const std::string_view type = split ? file.text(*split, "type", "") : "none";
  options.newline.clear();
  if (type == "Split") {
    const auto pattern = file.find(*split, "pattern");
    if (!pattern || file.text(*pattern, "String", "") != " " ||
        file.text(*split, "behavior", "") != "Removed" || file.flag(*split, "invert", false))
      file.refuse("a WordLevel model is split at single spaces or white space, not so");
    const auto replaced = normalizer ? file.find(*normalizer, "pattern") : std::nullopt;
    const std::string_view content = normalizer ? file.text(*normalizer, "content", "") : "";
    if (!replaced || file.text(*normalizer, "type", "") != "Replace" ||
        file.text(*replaced, "String", "") != "\n" || content.size() < 3 ||
        content.front() != ' ' || content.back() != ' ' ||
        content.substr(1, content.size() - 2).find_first_of(" \n") != content.npos)
      file.refuse(
          "a WordLevel model split at spaces needs the normalizer that makes newlines a token");
    options.newline = std::string(content.substr(1, content.size() - 2));
  } else if (type != "WhitespaceSplit" || normalizer) {
    file.refuse("WordLevel with pre-tokenizer {}{} is not supported", type,
                normalizer ? " and a normalizer" : "");
  }
  auto vocabulary = read_vocabulary(file, model, read_special(file),
                                    [](std::string_view name) { return std::string(name); });
  return std::make_shared<WordLevel>(std::move(vocabulary), std::move(options));
}

// Parts of a tokenizer.json beside the model that would give other ids than the model alone.
void refuse_what_changes_ids(const File& file) {
  for (const char* part : {"truncation", "padding"})
    if (file.find(file.root(), part)) file.refuse("{} is not supported", part);
  const auto after = file.find(file.root(), "post_processor");
  if (after && file.text(*after, "type", "") != "ByteLevel")
    file.refuse("post_processor {} is not supported (ByteLevel is)", file.text(*after, "type", ""));
}

}  // namespace

TokenizerPtr parse_tokenizer(std::string_view json, const std::string& origin) {
  simdjson::dom::parser parser;
  if (parser.allocate(std::max<std::size_t>(json.size(), 64), kMaxDepth) != simdjson::SUCCESS)
    fail(Code::bad_data, "{}: cannot be read as JSON: too large", origin);
  element root;
  const auto error = parser.parse(json.data(), json.size()).get(root);
  if (error == simdjson::DEPTH_ERROR) fail(Code::bad_data, "{}: JSON nested too deeply", origin);
  if (error != simdjson::SUCCESS)
    fail(Code::bad_data, "{}: not JSON: {}", origin, simdjson::error_message(error));
  const File file(root, origin);
  const auto model = file.find(root, "model");
  if (!model) file.refuse("not a tokenizer.json: no \"model\" in it");
  refuse_what_changes_ids(file);
  const std::string_view type =
      file.text(*model, "type", file.find(*model, "merges") ? "BPE" : "none");
  try {
    if (type == "BPE") return read_bpe(file, *model);
    if (type == "WordLevel") return read_word_level(file, *model);
  } catch (const core::Error& error) {
    const std::string_view what = error.what();
    if (what.substr(0, origin.size()) == origin) throw;
    file.refuse("{}", what);
  }
  file.refuse("model {} is not supported (BPE, byte-level, and WordLevel are)", type);
}

}  // namespace text
