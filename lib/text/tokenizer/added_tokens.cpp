#include "text/tokenizer/added_tokens.h"

#include <algorithm>

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  const char* const end = text.data() + text.size();
  return is_word_char(decode_char(previous_char(text.data(), end), end).code_point);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() &&
         is_word_char(decode_char(text.data(), text.data() + text.size()).code_point);
}

// Where the white space at the end of `text` begins.
std::size_t space_at_end(std::string_view text) {
  const char* p = text.data() + text.size();
  while (p > text.data()) {
    const char* const before = previous_char(text.data(), p);
    if (class_of(decode_char(before, p).code_point) != CharClass::space) break;
    p = before;
  }
  return static_cast<std::size_t>(p - text.data());
}

std::size_t space_at_start(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* p = text.data();
  while (p < end) {
    const Char c = decode_char(p, end);
    if (class_of(c.code_point) != CharClass::space) break;
    p += c.bytes;
  }
  return static_cast<std::size_t>(p - text.data());
}

}  // namespace

AddedMatcher::AddedMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  // Of equal contents the first counts.
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  tokens_.erase(
      std::unique(tokens_.begin(), tokens_.end(),
                  [](const AddedToken& a, const AddedToken& b) { return a.content == b.content; }),
      tokens_.end());
  first_.assign(257, 0);
  for (const AddedToken& token : tokens_) {
    ++first_[static_cast<unsigned char>(token.content[0]) + 1u];
    longest_ = std::max(longest_, token.content.size());
    finds_ |= !token.special;
    strips_left_ |= token.lstrip;
    strips_right_ |= token.rstrip;
  }
  for (std::size_t b = 0; b < 256; ++b) first_[b + 1] += first_[b];
}

const AddedToken* AddedMatcher::longest_at(std::string_view text, std::size_t at) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::string_view rest = text.substr(at);
  // A token comes behind its beginnings in the order of contents.
  auto low = tokens_.begin() + first_[byte];
  auto high = tokens_.begin() + first_[byte + 1u];
  const AddedToken* found = nullptr;
  for (std::size_t n = 1; low < high; ++n) {
    if (low->content.size() == n) found = &*low++;
    if (n >= rest.size()) break;
    const auto next = static_cast<unsigned char>(rest[n]);
    const auto byte_at = [n](const AddedToken& token) {
      return static_cast<unsigned char>(token.content[n]);
    };
    low = std::partition_point(low, high, [&](const auto& t) { return byte_at(t) < next; });
    high = std::partition_point(low, high, [&](const auto& t) { return byte_at(t) <= next; });
  }
  return found;
}

void AddedMatcher::each(std::string_view text,
                        const std::function<void(std::string_view)>& take_text,
                        const std::function<void(std::uint32_t)>& take_token) const {
  std::size_t done = 0;
  for (std::size_t at = 0; finds_ && at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const AddedToken* token = first_[byte] == first_[byte + 1u] ? nullptr : longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->special) continue;
    if (token->single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end))))
      continue;
    if (token->lstrip) begin = std::max(space_at_end(text.substr(0, begin)), done);
    if (token->rstrip) end += space_at_start(text.substr(end));
    if (done < begin) take_text(text.substr(done, begin - done));
    take_token(token->id);
    done = end;
  }
  if (done < text.size()) take_text(text.substr(done));
}

bool AddedMatcher::touches(std::string_view text, std::size_t at) const {
  if (!finds_) return false;
  // A token that strips may reach the place over white space, and stand beyond the ends of `text`.
  std::size_t low = at, high = at;
  if (strips_right_ && (low = space_at_end(text.substr(0, at))) == 0 && at > 0) return true;
  if (strips_left_ && (high += space_at_start(text.substr(at))) == text.size() && high > at)
    return true;
  for (std::size_t from = low - std::min(low, longest_); from <= high && from < text.size();
       ++from) {
    for (std::size_t i = first_[static_cast<unsigned char>(text[from])];
         i < first_[static_cast<unsigned char>(text[from]) + 1u]; ++i) {
      const AddedToken& token = tokens_[i];
      const std::string& content = token.content;
      if (from + content.size() >= (token.rstrip ? low : at) &&
          from <= (token.lstrip ? high : at) && text.substr(from, content.size()) == content)
        return true;
    }
  }
  return false;
}

}  // namespace text
