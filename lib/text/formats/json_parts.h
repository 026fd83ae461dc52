#pragma once
// Reads the parts of a tokenizer.json around the model.

#include <simdjson.h>

#include "text/tokenizer/pieces.h"

namespace text {

/// A TokenizerJson is a parsed tokenizer.json with its name for messages.
class TokenizerJson {
 public:
  TokenizerJson(simdjson::dom::element root, std::string origin)
      : root_(root), origin_(std::move(origin)) {}

  simdjson::dom::element root() const { return root_; }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    core::bad_data("{}: {}", origin_, fmt::format(format, std::forward<Args>(args)...));
  }

  /// Returns a member; nothing if it is absent or null.
  std::optional<simdjson::dom::element> find(
      simdjson::dom::element object, std::string_view key) const {
    simdjson::dom::element found;
    if (object.at_key(key).get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
    return found;
  }
  std::string_view text(
      simdjson::dom::element object, std::string_view key, std::string_view otherwise) const {
    return value(object, key, otherwise, "a string");
  }
  bool flag(simdjson::dom::element object, std::string_view key, bool otherwise) const {
    return value(object, key, otherwise, "true or false");
  }
  double number(simdjson::dom::element object, std::string_view key, double otherwise) const {
    return value(object, key, otherwise, "a number");
  }
  simdjson::dom::array list(simdjson::dom::element object, std::string_view key) const {
    const auto found = find(object, key);
    simdjson::dom::array value;
    if (!found || found->get(value) != simdjson::SUCCESS) refuse("no list \"{}\"", key);
    return value;
  }
  std::uint32_t id(simdjson::dom::element value) const {
    std::uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || number >= kMaxIds)
      refuse("a token's id is not a number below {}", kMaxIds);
    return static_cast<std::uint32_t>(number);
  }
  static constexpr std::uint64_t kMaxIds = MergeTable::kMaxIds;

 private:
  template <class T>
  T value(simdjson::dom::element object, std::string_view key, T value, const char* what) const {
    const auto found = find(object, key);
    if (found && found->get(value) != simdjson::SUCCESS) refuse("\"{}\" is not {}", key, what);
    return value;
  }

  simdjson::dom::element root_;
  std::string origin_;
};

/// Reads "added_tokens", special or not.
std::vector<AddedToken> read_added(const TokenizerJson& file);
/// Reads the steps of "normalizer"; none if it is absent.
std::vector<NormalStep> read_normalizer(const TokenizerJson& file);
/// Reads "pre_tokenizer" of a byte-level model; Split::Kind::none means that the text is not split.
Split read_byte_level_split(const TokenizerJson& file);
/// Reads "pre_tokenizer" of a model of characters into the two fields of `parts`.
/// `spaces_replaced`: the normalizer leaves no spaces in the text.
void read_pieces_split(const TokenizerJson& file, bool spaces_replaced, Pieces::Parts& parts);
/// Reads "sentencepiece" of the model, which only this project writes; nothing if it is absent.
std::optional<PieceRules> read_rules(
    const TokenizerJson& file, simdjson::dom::element model, const Vocabulary& vocabulary);
/// Reads "normalizer" and "pre_tokenizer" of a model with rules. `symbols` are the tokens to find
/// in the normalised text.
TextSteps read_rules_steps(const TokenizerJson& file, const PieceRules& rules,
    const Vocabulary& vocabulary, std::vector<AddedToken> added,
    const std::vector<AddedToken>& symbols);
/// Reads "post_processor": the tokens around a text, which are added tokens or in the vocabulary.
Tokenizer::Template read_template(
    const TokenizerJson& file, const std::vector<AddedToken>& added, const Vocabulary& vocabulary);
/// Reads "decoder" of a model of characters; nothing if it is absent. Throws Error{bad_data} for
/// steps that are not supported, and for Metaspace with a token that begins with a space, which
/// would remove it from a text.
std::optional<PieceDecoder> read_decoder(const TokenizerJson& file, const Vocabulary& vocabulary);
/// Throws Error{bad_data} if `part`, "decoder" or "post_processor", has a step of another type than
/// `known`.
void expect_only(const TokenizerJson& file, std::string_view part, std::string_view known);

}  // namespace text
