#include "text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "text/tokenizer/utf8.h"

namespace text {
namespace {

void append_char(std::uint32_t code_point, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

// Appends the normal form of `text`, which is UTF-8.
void append_form(std::string_view text, bool compatible, std::string& out) {
  utf8proc_uint8_t* made = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> held(made, std::free);
  if (n < 0)
    core::fail(n == UTF8PROC_ERROR_NOMEM ? core::Code::out_of_memory : core::Code::bug,
               "a text cannot be normalised: {}", utf8proc_errmsg(n));
  out.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(n));
}

// The first byte from p on that is not ASCII, or end.
const char* skip_ascii(const char* p, const char* end) {
  for (std::uint64_t bytes; end - p >= 8; p += 8) {
    std::memcpy(&bytes, p, 8);
    if (bytes & 0x8080808080808080u) break;
  }
  while (p < end && static_cast<unsigned char>(*p) < 0x80) ++p;
  return p;
}

// NFC or NFKC of `text`. Only runs of characters that may change, with the character before each,
// which marks may join, are looked at closely; false if there was none.
bool to_form(std::string_view text, bool compatible, std::string& out) {
  // Below these bytes begin characters that are what they are.
  const unsigned char quick = compatible ? 0x80 : 0xCC;
  const char* const end = text.data() + text.size();
  const char* copied = text.data();
  const char* before = nullptr;  // the character before p, if it is UTF-8
  bool changed = false;
  for (const char* p = text.data(); p < end;) {
    if (const char* const other = skip_ascii(p, end); other != p) {
      before = other - 1;
      p = other;
      continue;
    }
    Char c = decode_char(p, end);
    if (static_cast<unsigned char>(*p) < quick || Normalizer::is_inert(c.code_point)) {
      before = c.code_point == Char::kInvalid ? nullptr : p;
      p += c.bytes;
      continue;
    }
    const char* const from = before != nullptr ? before : p;
    while (p < end) {
      c = decode_char(p, end);
      if (Normalizer::is_inert(c.code_point)) break;
      p += c.bytes;
    }
    out.append(copied, from);
    append_form({from, static_cast<std::size_t>(p - from)}, compatible, out);
    copied = p;
    before = nullptr;
    changed = true;
  }
  if (changed) out.append(copied, end);
  return changed;
}

bool to_lower(std::string_view text, std::string& out) {
  const char* const end = text.data() + text.size();
  bool changed = false;
  for (const char* p = text.data(); p < end;) {
    const Char c = decode_char(p, end);
    if (c.code_point == 0x130) {
      out += "i\xCC\x87";
      changed = true;
    } else if (c.code_point == Char::kInvalid) {
      out += *p;
    } else {
      const auto lower =
          static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point)));
      changed |= lower != c.code_point;
      append_char(lower, out);
    }
    p += c.bytes;
  }
  return changed;
}

bool replace(std::string_view text, const NormalStep& step, std::string& out) {
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(step.from, from)) != text.npos;) {
    out.append(text, from, at - from);
    out += step.to;
    from = at + step.from.size();
  }
  if (from == 0) return false;
  out.append(text, from);
  return true;
}

bool run(const NormalStep& step, std::string_view text, bool begins, std::string& out) {
  switch (step.what) {
    case NormalStep::What::nfc:
      return to_form(text, false, out);
    case NormalStep::What::nfkc:
      return to_form(text, true, out);
    case NormalStep::What::lowercase:
      return to_lower(text, out);
    case NormalStep::What::prepend:
      if (!begins || text.empty()) return false;
      out.append(step.to).append(text);
      return true;
    case NormalStep::What::replace:
      return replace(text, step, out);
  }
  return false;
}

}  // namespace

bool Normalizer::is_inert(std::uint32_t code_point) {
  if (code_point < 0xA0 || code_point == Char::kInvalid) return true;
  // Chinese characters, kana and syllables of Hangul are many and stay as they are; parts of
  // syllables join.
  if (code_point >= 0x4E00 && code_point <= 0x9FFF) return true;
  if (code_point >= 0x1100 && code_point <= 0x11FF) return false;
  if (code_point >= 0xAC00 && code_point <= 0xD7A3) return true;
  const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
  if (property->combining_class != 0 || property->decomp_seqindex != UINT16_MAX) return false;
  switch (property->category) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return false;
    default:
      return true;
  }
}

std::string_view Normalizer::apply(std::string_view text, bool begins, std::string& buffer) const {
  std::string made;
  for (const NormalStep& step : steps_) {
    made.clear();
    if (!run(step, text, begins, made)) continue;
    buffer.swap(made);
    text = buffer;
  }
  return text;
}

}  // namespace text
