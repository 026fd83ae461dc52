#include "infer/answers/joint_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace infer {
namespace {

using namespace std::string_view_literals;

constexpr std::array kSpaces = {
    "\t"sv,           "\n"sv,           "\v"sv,           "\f"sv,           "\r"sv,
    "\x1c"sv,         "\x1d"sv,         "\x1e"sv,         "\x1f"sv,         " "sv,
    "\xc2\x85"sv,     "\xc2\xa0"sv,     "\xe1\x9a\x80"sv, "\xe2\x80\x80"sv, "\xe2\x80\x81"sv,
    "\xe2\x80\x82"sv, "\xe2\x80\x83"sv, "\xe2\x80\x84"sv, "\xe2\x80\x85"sv, "\xe2\x80\x86"sv,
    "\xe2\x80\x87"sv, "\xe2\x80\x88"sv, "\xe2\x80\x89"sv, "\xe2\x80\x8a"sv, "\xe2\x80\xa8"sv,
    "\xe2\x80\xa9"sv, "\xe2\x80\xaf"sv, "\xe2\x81\x9f"sv, "\xe3\x80\x80"sv};

std::vector<std::uint32_t> encode(text::Encoder& encoder, std::string_view text) {
  std::vector<std::uint32_t> ids;
  encoder.encode(text, ids);
  return ids;
}

std::size_t common_prefix(const std::vector<std::uint32_t>& a,
                          const std::vector<std::uint32_t>& b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(ends.first - a.begin());
}

// Returns the bytes of tokens inside a text, at most `most`. A normalizer may have made the tokens
// from other bytes.
std::int64_t bytes_of(const text::Tokenizer& tokenizer, const std::vector<std::uint32_t>& tokens,
                      std::int64_t most) {
  return std::min(most, std::ssize(tokenizer.decode(tokens, false)));
}

}  // namespace

std::size_t trailing_space(const std::string& text) {
  std::string_view rest = text;
  for (;;) {
    const auto* const space = std::find_if(kSpaces.begin(), kSpaces.end(),
                                           [&](auto known) { return rest.ends_with(known); });
    if (space == kSpaces.end()) return text.size() - rest.size();
    rest.remove_suffix(space->size());
  }
}

std::vector<JointTokens> encode_jointly(const text::Tokenizer& tokenizer, text::Encoder& encoder,
                                        const std::string& context,
                                        const std::vector<std::string>& continuations,
                                        Boundary boundary) {
  const std::size_t kept = context.size() - trailing_space(context);
  const auto alone = encode(encoder, std::string_view(context).substr(0, kept));
  std::vector<std::vector<std::uint32_t>> wholes;
  std::size_t common = alone.size();
  for (const auto& continuation : continuations) {
    const auto& whole = wholes.emplace_back(encode(encoder, context + continuation));
    if (boundary == Boundary::prefix) common = std::min(common, common_prefix(alone, whole));
  }
  const auto end = alone.begin() + static_cast<std::ptrdiff_t>(common);
  const std::vector<std::uint32_t> moved(end, alone.end());
  const auto more = static_cast<std::int64_t>(context.size() - kept) +
                    bytes_of(tokenizer, moved, static_cast<std::int64_t>(kept));
  std::vector<JointTokens> all;
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const auto& whole = wholes[i];
    const auto from = static_cast<std::ptrdiff_t>(std::min(common, whole.size()));
    all.push_back({{alone.begin(), end},
                   {whole.begin() + from, whole.end()},
                   more + std::ssize(continuations[i])});
  }
  return all;
}

}  // namespace infer
