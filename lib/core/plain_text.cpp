#include "core/plain_text.h"

#include "core/io.h"

namespace core {

// Beginnings of files that are no text, a line each: the bytes in hexadecimal digits, a tab, what
// such a file is and what to do. Longer beginnings precede their prefixes.
extern const std::string_view kBeginnings;

namespace {

using namespace std::string_view_literals;

struct Character {
  std::size_t bytes;
  enum { whole, unfinished, wrong } state;
};

// Returns the character at the front of a non-empty `text`. For an invalid one it returns the bytes
// that could have begun a character, or the byte that could not (the Unicode Standard, table 3-7).
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, Character::whole};
  if (lead < 0xC2 || lead > 0xF4) return {1, Character::wrong};
  const std::size_t n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < n; ++i) {
    if (i == text.size()) return {i, Character::unfinished};
    if (byte(i) < least || byte(i) > most) return {i, Character::wrong};
    least = 0x80, most = 0xBF;
  }
  return {n, Character::whole};
}

// Detects UTF-16 and UTF-32 without a byte order mark: Latin letters leave NULs at fixed positions.
const char* wide_characters(std::string_view start) {
  start = start.substr(0, std::min<std::size_t>(start.size(), 4096) & ~std::size_t{3});
  if (start.size() < 8) return nullptr;
  std::size_t nuls[4] = {};
  for (std::size_t i = 0; i < start.size(); ++i) nuls[i % 4] += start[i] == '\0' ? 1 : 0;
  const std::size_t characters = start.size() / 4;
  const auto most = [&](int i) { return nuls[i] * 10 >= characters * 9; };
  const auto none = [&](int i) { return nuls[i] == 0; };
  const auto many = [&](int i) { return nuls[i] * 2 >= characters; };
  if (none(0) && most(1) && most(2) && nuls[3] == characters)
    return "UTF-32 (little-endian), not UTF-8; convert it: iconv -f UTF-32LE -t UTF-8";
  if (nuls[0] == characters && most(1) && most(2) && none(3))
    return "UTF-32 (big-endian), not UTF-8; convert it: iconv -f UTF-32BE -t UTF-8";
  if (none(0) && none(2) && many(1) && many(3))
    return "UTF-16 (little-endian), not UTF-8; convert it: iconv -f UTF-16LE -t UTF-8";
  if (none(1) && none(3) && many(0) && many(2))
    return "UTF-16 (big-endian), not UTF-8; convert it: iconv -f UTF-16BE -t UTF-8";
  return nullptr;
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

std::size_t character_length(std::string_view text) {
  const Character character = first_character(text);
  return character.state == Character::whole ? character.bytes : 0;
}

std::size_t utf8_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t n = character_length(text.substr(at));
    if (n == 0) return at;
    at += n;
  }
  return at;
}

std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto last = text.substr(text.size() - back);
    if (is_continuation(last[0])) continue;
    return first_character(last).state == Character::unfinished ? back : 0;
  }
  return 0;
}

std::string take_characters(std::string& text) {
  std::string whole = text.substr(0, text.size() - unfinished_bytes(text));
  text.erase(0, whole.size());
  return whole;
}

std::string with_replacements(std::string_view text, std::uint64_t& replaced) {
  std::string made;
  made.reserve(text.size() + 16);
  while (!text.empty()) {
    const std::size_t good = utf8_length(text);
    made += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    made += kReplacementCharacter;
    ++replaced;
    text.remove_prefix(first_character(text).bytes);
  }
  return made;
}

std::size_t replaced_length(std::string_view text) { return first_character(text).bytes; }

std::string what_is_not_utf8(std::string_view text, std::size_t at, std::uint64_t before) {
  const auto bad = first_character(text.substr(at));
  const std::string place =
      fmt::format("byte {} (0x{:02x})", before + at, static_cast<unsigned char>(text[at]));
  constexpr std::string_view kHow = "Latin-1 or Windows-1252: iconv -f WINDOWS-1252 -t UTF-8";
  if (bad.state == Character::unfinished)
    return fmt::format(
        "{} is not UTF-8: the file ends within a character, or it is {}", place, kHow);
  return fmt::format("{} is not UTF-8; if it is {}", place, kHow);
}

std::string utf8_fault(std::string_view text) {
  const std::size_t at = utf8_length(text);
  return at < text.size() ? what_is_not_utf8(text, at) : std::string();
}

bool begins_as_text(std::string_view start) {
  const std::string_view text = without_byte_order_mark(start);
  return !text.empty() && utf8_length(text) + unfinished_bytes(text) == text.size() &&
         std::ranges::none_of(text, [](unsigned char c) {
           return c == 0x7F || (c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f');
         });
}

bool is_bzip2(std::string_view start) {
  // The magic of a block, or of the end of an empty file.
  return start.size() >= 10 && start.starts_with("BZh") && start[3] >= '1' && start[3] <= '9' &&
         (start.substr(4, 6) == "1AY&SY"sv || start.substr(4, 6) == "\x17\x72\x45\x38\x50\x90"sv);
}

std::string what_is_no_text(std::string_view start) {
  std::string hex;
  for (const unsigned char c : start.substr(0, 64)) hex += fmt::format("{:02X}", c);
  for (auto rows = kBeginnings; !rows.empty();) {
    const auto row = rows.substr(0, rows.find('\n')), bytes = row.substr(0, row.find('\t'));
    if (hex.starts_with(bytes)) return std::string(row.substr(bytes.size() + 1));
    rows.remove_prefix(row.size() + 1);
  }
  if (is_bzip2(start)) return "compressed by bzip2, not text; decompress it: bzip2 -dc";
  if (start.size() >= 262 && start.substr(257, 5) == "ustar")
    return "a tar archive, not text; unpack it: tar -xOf";
  if (const char* wide = wide_characters(start)) return wide;
  return {};
}

void expect_text(std::string_view start, const std::string& name) {
  if (const auto what = what_is_no_text(start); !what.empty())
    bad_data("{}: byte 0: {}", name, what);
}

std::string read_utf8(ByteSource& source) {
  const std::string text = read_text(source);
  expect_text(text, source.name());
  if (const auto fault = utf8_fault(text); !fault.empty()) bad_data("{}: {}", source.name(), fault);
  return std::string(without_byte_order_mark(text));
}

std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) >= 0x20 && byte(0) < 0x7F) return 1;
  if (byte(0) < 0x80) return 0;
  const std::size_t n = character_length(text);
  const bool is_control = n == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080-9F
  return is_control ? 0 : n;
}

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t n = printable_length(text);
    if (n > 0) {
      line += text.substr(0, n);
    } else {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
    text.remove_prefix(n > 0 ? n : 1);
  }
  return line;
}

}  // namespace core
