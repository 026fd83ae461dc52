#include "text/tokenizer/special_text.h"

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/pieces.h"
#include "text/tokenizer/unigram.h"

namespace text {

TokenizerPtr parsing_special(const Tokenizer& tokenizer) {
  if (const auto* bytes = dynamic_cast<const ByteLevel*>(&tokenizer))
    return bytes->parsing_special();
  if (const auto* pieces = dynamic_cast<const Pieces*>(&tokenizer))
    return pieces->parsing_special();
  if (const auto* unigram = dynamic_cast<const Unigram*>(&tokenizer))
    return unigram->parsing_special();
  core::fail(core::Code::unavailable, "--special: not supported by a {} tokenizer; leave it out",
      name_of(tokenizer.kind()));
}

std::vector<AddedToken> as_added(const std::vector<SpecialToken>& special) {
  std::vector<AddedToken> added;
  for (const auto& token : special)
    added.push_back({.id = token.id, .content = token.content, .special = true});
  return added;
}

SpecialText::SpecialText(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == TokenizerKind::word || tokenizer.kind() == TokenizerKind::units) return;
  for (const auto& token : tokenizer.special_tokens()) {
    if (token.content.size() < 2) continue;
    contents_.push_back(token.content);
    if (firsts_.find(token.content[0]) == firsts_.npos) firsts_ += token.content[0];
    seconds_[static_cast<unsigned char>(token.content[1])] = true;
  }
}

std::string_view SpecialText::find(std::string_view text) const {
  if (firsts_.empty()) return {};
  for (std::size_t at = 0; (at = text.find_first_of(firsts_, at)) != text.npos; ++at) {
    if (at + 1 == text.size() || !seconds_[static_cast<unsigned char>(text[at + 1])]) continue;
    const auto found = std::find_if(contents_.begin(), contents_.end(),
        [rest = text.substr(at)](const auto& one) { return rest.starts_with(one); });
    if (found != contents_.end()) return *found;
  }
  return {};
}

std::string SpecialText::note(const std::string& where, std::string_view found) {
  return fmt::format(
      "{} contains the text of the special token {}, encoded as ordinary text; --special "
      "encodes it as the token",
      where, found);
}

}  // namespace text
