#include "text/tokenizer/text_or_ids.h"

#include <charconv>

#include "core/error.h"

namespace text {

using core::Code;
using core::fail;

std::vector<std::uint32_t> TextOrIds::encode(const std::string& text, bool ids) const {
  std::vector<std::uint32_t> tokens;
  if (!ids) {
    if (tokenizer_ == nullptr)
      fail(Code::usage, "{} has no tokenizer; give token ids with --ids", name_);
    tokens = tokenizer_->encode(text);
  }
  const char *at = text.data(), *const end = at + text.size();
  while (ids && at < end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    std::uint32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next < end && *next != ' '))
      fail(Code::usage, "--ids: takes token ids separated by spaces, not '{}'", text);
    tokens.push_back(id);
    at = next;
  }
  if (tokens.empty()) fail(Code::usage, "TEXT: takes at least one token");
  return tokens;
}

std::string TextOrIds::decode(std::span<const std::uint32_t> tokens) const {
  if (tokenizer_ == nullptr) return fmt::format("{}", fmt::join(tokens, " "));
  StreamDecoder decoder(tokenizer_);
  std::string text;
  for (const std::uint32_t token : tokens)
    if (token < tokenizer_->size()) decoder.push(token, text);
  return text;
}

}  // namespace text
