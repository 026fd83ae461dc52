#include "text/tokenizer/charsmap.h"

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

constexpr std::uint32_t kLabel = (std::uint32_t{1} << 31) | 0xFF;

std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit >> 9 & 1) * 8); }

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (size < sizeof(std::uint32_t) || size % sizeof(std::uint32_t) != 0 ||
      size > bytes.size() - sizeof size)
    core::bad_data("damaged rules of normalisation (precompiled_charsmap)");
  units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof size, size);
  texts_ = bytes.substr(sizeof size + size);
  texts_ += '\0';
}

Charsmap::Rule Charsmap::find(std::string_view text) const {
  Rule best;
  std::uint32_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || (units_[at] & kLabel) != byte) break;
    const bool ends = (units_[at] >> 8 & 1) != 0;
    at ^= offset_of(units_[at]);
    if (!ends) continue;
    if (at >= units_.size()) break;
    const std::uint32_t from = units_[at] & ~(std::uint32_t{1} << 31);
    if (from < texts_.size()) best = {i + 1, texts_.data() + from};
  }
  return best;
}

bool Charsmap::apply(std::string_view text, std::string& out, std::size_t room) const {
  bool changed = false;
  while (!text.empty() && out.size() <= room) {
    const auto rule = find(text);
    const std::size_t bytes =
        rule.bytes > 0 ? rule.bytes : decode_char(text.data(), text.data() + text.size()).bytes;
    const auto own = text.substr(0, bytes), made = rule.bytes > 0 ? rule.becomes : own;
    changed |= made != own;
    out += made;
    text.remove_prefix(bytes);
  }
  return changed;
}

}  // namespace text
