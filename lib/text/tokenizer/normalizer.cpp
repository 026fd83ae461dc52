#include "text/tokenizer/normalizer.h"

#include <utf8proc.h>

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

constexpr std::uint32_t kLabel = (std::uint32_t{1} << 31) | 0xFF;

std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit >> 9 & 1) * 8); }

// Appends the normal form of `text`, which is UTF-8. utf8proc_map() puts marks into order by a sort
// whose time grows with the square of a run of marks.
void append_form(std::string_view text, bool compatible, std::string& out) {
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_COMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  const auto check = [](utf8proc_ssize_t n) {
    if (n < 0) core::bug("a text cannot be normalised: {}", utf8proc_errmsg(n));
    return static_cast<std::size_t>(n);
  };
  utf8proc_int32_t few[64];  // most runs are short
  std::vector<utf8proc_int32_t> many;
  std::size_t n = 0;
  const auto chars = [&] { return many.empty() ? few : many.data(); };
  int boundary = 0;
  for (const char *p = text.data(), *const end = p + text.size(); p < end;) {
    const Char c = decode_char(p, end);
    p += c.bytes;
    utf8proc_int32_t made[32];
    const std::size_t count =
        check(utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), made,
            static_cast<utf8proc_ssize_t>(std::size(made)), options, &boundary));
    if (count > std::size(made)) core::bug("a character of {} characters", count);
    if (many.empty() && n + count > std::size(few)) many.assign(few, few + n);
    if (many.empty()) {
      std::copy(made, made + count, few + n);
    } else {
      many.insert(many.end(), made, made + count);
    }
    n += count;
  }
  const auto class_at = [](utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
  };
  const auto less = [&](auto a, auto b) { return class_at(a) < class_at(b); };
  for (auto *from = chars(), *const end = from + n; from != end;) {
    if (class_at(*from) == 0) {
      ++from;
      continue;
    }
    const auto to = std::find_if(from, end, [&](auto c) { return class_at(c) == 0; });
    if (!std::is_sorted(from, to, less)) std::stable_sort(from, to, less);
    from = to;
  }
  n = check(utf8proc_normalize_utf32(chars(), static_cast<utf8proc_ssize_t>(n), options));
  for (const utf8proc_int32_t c : std::span(chars(), n))
    append_char(out, static_cast<std::uint32_t>(c));
}

// Returns the first non-ASCII byte from p on, or end.
const char* skip_ascii(const char* p, const char* end) {
  for (std::uint64_t bytes; end - p >= 8; p += 8) {
    std::memcpy(&bytes, p, 8);
    if (bytes & 0x8080808080808080u) break;
  }
  while (p < end && static_cast<unsigned char>(*p) < 0x80) ++p;
  return p;
}

// Converts `text` to NFC or NFKC. Only runs of characters that may change are examined, with the
// character before each run, which marks may join. Returns false if there is no such run.
bool to_form(std::string_view text, bool compatible, std::string& out) {
  // Characters that begin with a smaller byte never change.
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
      append_char(out, lower);
    }
    p += c.bytes;
  }
  return changed;
}

// Returns the step's name for messages.
std::string name_of(const NormalStep& step) {
  switch (step.what) {
    case NormalStep::What::nfc: return "NFC";
    case NormalStep::What::nfkc: return "NFKC";
    case NormalStep::What::lowercase: return "Lowercase";
    case NormalStep::What::prepend: return fmt::format("Prepend of {} bytes", step.to.size());
    case NormalStep::What::replace:
      return fmt::format("Replace of \"{}\" by {} bytes", step.from, step.to.size());
    case NormalStep::What::trim:
    case NormalStep::What::squeeze: return "Replace of spaces";
    case NormalStep::What::charsmap: return "Precompiled";
  }
  return "";
}

// Applies one step within the remaining room.
class StepRun {
 public:
  StepRun(const NormalStep& step, const Charsmap* rules, std::size_t number, std::size_t room)
      : step_(step), rules_(rules), number_(number), room_(room) {}

  // Returns false if the step changes nothing.
  bool operator()(std::string_view text, bool begins, std::string& out) const {
    const bool changed = make(text, begins, out);
    if (changed) expect(out.size());
    return changed;
  }

 private:
  bool make(std::string_view text, bool begins, std::string& out) const {
    switch (step_.what) {
      case NormalStep::What::nfc: return to_form(text, false, out);
      case NormalStep::What::nfkc: return to_form(text, true, out);
      case NormalStep::What::lowercase: return to_lower(text, out);
      case NormalStep::What::prepend:
        if (!begins || text.empty()) return false;
        expect(step_.to.size() + text.size());
        out.append(step_.to).append(text);
        return true;
      case NormalStep::What::replace: return replace(text, out);
      case NormalStep::What::trim: return trim(text, begins, out);
      case NormalStep::What::squeeze: return squeeze(text, out);
      case NormalStep::What::charsmap: return rules_->apply(text, out, room_);
    }
    return false;
  }

  // A text continued after a cut never begins with a space.
  static bool trim(std::string_view text, bool begins, std::string& out) {
    const auto size = text.size();
    while (begins && text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    if (text.size() == size) return false;
    out = text;
    return true;
  }
  static bool squeeze(std::string_view text, std::string& out) {
    if (text.find("  ") == text.npos) return false;
    for (const char c : text)
      if (c != ' ' || !out.ends_with(' ')) out += c;
    return true;
  }

  bool replace(std::string_view text, std::string& out) const {
    std::size_t from = 0;
    for (std::size_t at; (at = text.find(step_.from, from)) != text.npos;) {
      expect(out.size() + (at - from) + step_.to.size());
      out.append(text, from, at - from);
      out += step_.to;
      from = at + step_.from.size();
    }
    if (from == 0) return false;
    out.append(text, from);
    return true;
  }

  void expect(std::size_t bytes) const {
    if (bytes > room_)
      core::bad_data(
          "step {} of the tokenizer's normalizer, {}, "
          "makes this text more than {} times as long, which is not supported",
          number_, name_of(step_), Normalizer::kGrowth);
  }

  const NormalStep& step_;
  const Charsmap* const rules_;
  const std::size_t number_, room_;
};

}  // namespace

void append_marked(std::string_view text, std::string_view mark, std::string& out) {
  for (std::size_t from = 0; from < text.size();) {
    const auto space = std::min(text.find(' ', from), text.size());
    out.append(text, from, space - from);
    if (space < text.size()) out += mark;
    from = space + 1;
  }
}

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

Normalizer::Normalizer(std::vector<NormalStep> steps)
    : steps_(std::move(steps)), rules_(steps_.size()) {
  using What = NormalStep::What;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].what == What::charsmap)
      rules_[i] = std::make_shared<const Charsmap>(steps_[i].from);
    counts_spaces_ |= steps_[i].what == What::trim || steps_[i].what == What::squeeze;
  }
}

Normalizer::Normalizer(
    std::vector<NormalStep> steps, const std::vector<AddedToken>& symbols, bool prefix_once)
    : Normalizer(std::move(steps)) {
  using What = NormalStep::What;
  std::size_t next = 0;
  const auto is = [&](What what) { return next < steps_.size() && steps_[next].what == what; };
  if (is(What::charsmap)) ++next;
  if (is(What::trim) && next + 1 < steps_.size() && steps_[next + 1].what == What::squeeze)
    next += 2;
  if (is(What::prepend)) prefix_ = steps_[next++].to;
  if (next + 1 != steps_.size() || !is(What::replace) || steps_[next].from != " " ||
      steps_[next].to.empty())
    core::bad_data("the normalizer's steps are not those of a tokenizer.model");
  mark_ = steps_[next].to;
  one_pass_ = true;
  prefix_once_ = prefix_once;
  // Nothing else would change a symbol.
  if (rules_[0] || counts_spaces_) symbols_ = AddedMatcher(symbols);
}

bool Normalizer::parts_at(std::string_view text, std::size_t at) const {
  constexpr std::size_t kLongestRule = 64;
  if (symbols_.touches(text, at)) return false;
  for (const auto& rules : rules_) {
    for (std::size_t from = at - std::min(at, kLongestRule); rules && from < at; ++from) {
      const auto rule = rules->find(text.substr(from));
      if (from + rule.bytes > at || (from + rule.bytes == at && rule.bytes > 0 &&
                                        (rule.becomes.empty() || rule.becomes.ends_with(' '))))
        return false;
    }
  }
  return true;
}

bool Normalizer::is_inert(std::uint32_t code_point) {
  if (code_point < 0xA0 || code_point == Char::kInvalid) return true;
  // Chinese characters, kana and Hangul syllables are frequent and never change. Parts of syllables
  // combine.
  if (code_point >= 0x4E00 && code_point <= 0x9FFF) return true;
  if (code_point >= 0x1100 && code_point <= 0x11FF) return false;
  if (code_point >= 0xAC00 && code_point <= 0xD7A3) return true;
  const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
  if (property->combining_class != 0 || property->decomp_seqindex != UINT16_MAX) return false;
  // The categories of marks are MN to ME.
  return property->category < UTF8PROC_CATEGORY_MN || property->category > UTF8PROC_CATEGORY_ME;
}

std::string_view Normalizer::apply(
    std::string_view text, PiecePosition place, std::string& buffer, std::size_t room) const {
  if (one_pass_) return apply_in_one_pass(text, place, buffer, room);
  const bool begins = place != PiecePosition::continues;
  std::string made;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    made.clear();
    if (!StepRun(steps_[i], rules_[i].get(), i + 1, room)(text, begins, made)) continue;
    buffer.swap(made);
    text = buffer;
  }
  return text;
}

// Sentencepiece takes the text in chunks from left to right: a symbol, else the source of a rule,
// else a character. Spaces are counted between chunks, not inside them.
std::string_view Normalizer::apply_in_one_pass(
    std::string_view text, PiecePosition place, std::string& buffer, std::size_t room) const {
  const Charsmap* const rules = rules_[0].get();
  const bool whole = rules == nullptr && !counts_spaces_;
  const auto symbols = whole ? std::vector<AddedMatcher::Start>() : symbols_.starts(text);
  auto symbol = symbols.begin();
  std::size_t at = 0;
  const auto chunk = [&]() -> Charsmap::Rule {
    while (symbol != symbols.end() && symbol->at < at) ++symbol;
    if (symbol != symbols.end() && symbol->at == at)
      return {symbol->bytes, text.substr(at, symbol->bytes)};
    if (rules != nullptr)
      if (const auto rule = rules->find(text.substr(at)); rule.bytes > 0) return rule;
    const auto bytes = decode_char(text.data() + at, text.data() + text.size()).bytes;
    return {bytes, text.substr(at, bytes)};
  };
  const auto append = [&](std::string_view part) {
    append_marked(part, mark_, buffer);
    if (buffer.size() > room)
      core::bad_data(
          "the tokenizer's normalizer makes this text more than {} times as long, which is "
          "not supported",
          kGrowth);
  };
  buffer.clear();
  bool after_space = counts_spaces_ && place != PiecePosition::continues;
  while (after_space && at < text.size()) {
    const auto next = chunk();
    if (next.becomes != " ") break;
    at += next.bytes;
  }
  if (at == text.size()) return {};
  if (place != PiecePosition::continues && !prefix_once_) buffer = prefix_;
  if (whole) append(text);
  while (!whole && at < text.size()) {
    auto [bytes, becomes] = chunk();
    at += bytes;
    while (after_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
    if (becomes.empty()) continue;
    append(becomes);
    after_space = counts_spaces_ && becomes.ends_with(' ');
  }
  if (prefix_once_ && place == PiecePosition::begins_text && !buffer.starts_with(mark_))
    buffer.insert(0, prefix_);
  while (counts_spaces_ && buffer.ends_with(mark_)) buffer.resize(buffer.size() - mark_.size());
  return buffer;
}

}  // namespace text
