#include "text/tokenizer/byte_alphabet.h"

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

constexpr std::uint32_t kLimit = 256 + 68;  // bound of the alphabet's characters

struct Tables {
  std::array<std::uint16_t, 256> character{};  // by byte
  std::array<std::int16_t, kLimit> byte{};     // by character; -1: none
  std::array<std::uint8_t, 256> in_order{};

  Tables() {
    byte.fill(-1);
    std::uint32_t next = 256;
    for (std::uint32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
      const std::uint32_t c = printable ? b : next++;
      character[b] = static_cast<std::uint16_t>(c);
      byte[c] = static_cast<std::int16_t>(b);
    }
    std::size_t n = 0;
    for (std::uint32_t c = 0; c < kLimit; ++c)
      if (byte[c] >= 0) in_order[n++] = static_cast<std::uint8_t>(byte[c]);
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

void append_in_alphabet(std::string_view bytes, std::string& out) {
  const Tables& t = tables();
  for (const char b : bytes) {
    const std::uint32_t c = t.character[static_cast<unsigned char>(b)];
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>(0xC0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
}

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  const Tables& t = tables();
  std::string bytes;
  bytes.reserve(text.size());
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Char c = decode_char(p, end);
    if (c.code_point >= kLimit || t.byte[c.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(t.byte[c.code_point]);
    p += c.bytes;
  }
  return bytes;
}

const std::array<std::uint8_t, 256>& bytes_in_alphabet_order() { return tables().in_order; }

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= n ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::optional<std::string> of_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int n = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if ((n += 6) >= 8) bytes += static_cast<char>(bits >> (n -= 8) & 0xFF);
  }
  return bytes;
}

}  // namespace text
