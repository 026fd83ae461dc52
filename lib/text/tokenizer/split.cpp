#include "text/tokenizer/split.h"

#include <charconv>
#include <initializer_list>

#include "text/tokenizer/text_steps.h"
#include "text/tokenizer/utf8.h"

namespace text {
namespace {

// Reads a pattern from left to right.
class PatternReader {
 public:
  explicit PatternReader(std::string_view rest) : rest_(rest) {}
  bool done() const { return rest_.empty(); }
  bool take(std::string_view part) {
    const bool found = rest_.starts_with(part);
    if (found) rest_.remove_prefix(part.size());
    return found;
  }
  bool take_one(std::initializer_list<std::string> parts) {
    return std::ranges::any_of(parts, [&](const std::string& part) { return take(part); });
  }
  bool take_number(std::size_t& number) {
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc{} || number == 0 || number > 1000) return false;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    return true;
  }

 private:
  std::string_view rest_;
};

struct DigitNames {
  DigitGroups::Digits digits;
  const char* yes;
  const char* no;
};
constexpr DigitNames kDigitNames[] = {{DigitGroups::Digits::number, R"(\p{N})", R"(\P{N})"},
    {DigitGroups::Digits::number, R"(\p{N})", R"([^\p{N}])"},
    {DigitGroups::Digits::decimal, R"(\p{Nd})", R"(\P{Nd})"},
    {DigitGroups::Digits::decimal, R"(\p{Nd})", R"([^\p{Nd}])"},
    {DigitGroups::Digits::decimal, R"(\d)", R"(\D)"},
    {DigitGroups::Digits::decimal, R"(\d)", R"([^\d])"},
    {DigitGroups::Digits::ascii, "[0-9]", "[^0-9]"}};

std::optional<DigitGroups> read_groups(std::string_view pattern, const DigitNames& names) {
  const std::string yes = names.yes, no = names.no;
  DigitGroups groups;
  groups.digits = names.digits;
  PatternReader reader(pattern);
  groups.places = reader.take("(?=");
  std::size_t again = 0;
  if (!groups.places &&
      !(reader.take(yes + "{1,") && reader.take_number(groups.size) && reader.take("}(?=")))
    return std::nullopt;
  if (!reader.take_one({"(?:", "(?>", "("}) || !reader.take(yes + "{") ||
      !reader.take_number(again) || !reader.take(groups.places ? "})+" : "})*"))
    return std::nullopt;
  if (groups.places) groups.size = again;
  if (again != groups.size) return std::nullopt;
  const std::string end[] = {no + "|$)", "$|" + no + ")"};
  // A number that is no decimal digit may be outside \w.
  if (names.digits != DigitGroups::Digits::number && reader.take(R"(\b)")) {
    groups.word_border = true;
  } else if (!reader.take_one(
                 {"(?!" + yes + ")", "(?:" + end[0], "(?:" + end[1], "(" + end[0], "(" + end[1]})) {
    return std::nullopt;
  }
  if (!reader.take(")")) return std::nullopt;
  groups.others = !groups.places && reader.take("|" + no + "+");
  return reader.done() ? std::optional(groups) : std::nullopt;
}

struct Known {
  Split::Kind kind;
  std::string_view pattern;
};
// The first pattern of each kind is the canonical one.
constexpr Known kKnown[] = {
    {Split::Kind::gpt2,
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Split::Kind::gpt2,
        R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Split::Kind::llama3,
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::Kind::qwen2,
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::Kind::o200k,
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Split::Kind::tekken,
        R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

struct Span {
  const char* begin;
  const char* end;
  bool match;
};

// The matches of a pattern in a piece, in order. An empty match splits the piece too, except at the
// end of the previous match (as in Hugging Face's tokenizers).
class Matches {
 public:
  Matches(const SplitStep& step, const char* begin, const char* end)
      : step_(step), begin_(begin), from_(begin), end_(end) {}
  // `certain` finds only matches that bytes after the end cannot change.
  std::optional<Regex::Match> next(MatchBudget& budget, bool certain = false) {
    while (from_ < end_) {
      const auto found = step_.regex->find(begin_, from_, end_, budget, certain);
      // A match may begin after its end, if a lookaround contains \K.
      if (!found || found->begin > found->end) break;
      if (found->begin < found->end || found->end != last_) {
        from_ = last_ = found->end;
        return found;
      }
      from_ += decode_char(from_, end_).bytes;
    }
    return std::nullopt;
  }

 private:
  const SplitStep& step_;
  const char* const begin_;
  const char* from_;
  const char* const end_;
  const char* last_ = nullptr;  // end of the previous match
};

// Finds the matches of a step in a piece and the text between them.
class Spans {
 public:
  Spans(const SplitStep& step, const char* begin, const char* end, MatchBudget& budget) {
    switch (step.what) {
      case SplitStep::What::pattern: {
        Matches matches(step, begin, end);
        for (const char* from = begin; const auto found = matches.next(budget);) {
          add(from, found->begin, found->end);
          from = found->end;
        }
        break;
      }
      case SplitStep::What::digit_groups: digit_groups(step.groups, begin, end); break;
      case SplitStep::What::string:
        for (const char* at = begin; at < end;) {
          // memmem() is linear in the text for any string.
          const auto* const found = static_cast<const char*>(
              memmem(at, static_cast<std::size_t>(end - at), step.text.data(), step.text.size()));
          if (found == nullptr) break;
          add(at, found, found + step.text.size());
          at = found + step.text.size();
        }
        break;
      case SplitStep::What::numbers:
      case SplitStep::What::each_number:
        numbers(begin, end, step.what == SplitStep::What::numbers);
        break;
      case SplitStep::What::gpt2:
        for (const char* at = begin; at < end;) {
          const char* const stop = gpt2_pretoken_end(at, end);
          add(at, at, stop);
          at = stop;
        }
        break;
    }
    const char* const last = list_.empty() ? begin : list_.back().end;
    if (last < end) list_.push_back({last, end, false});
    if (step.invert)
      for (Span& span : list_) span.match = !span.match;
    behave(step.behaviour);
    std::erase_if(list_, [](const Span& span) { return span.begin == span.end; });
  }
  const std::vector<Span>& list() const { return list_; }

 private:
  void add(const char* from, const char* begin, const char* end) {
    if (begin > from) list_.push_back({from, begin, false});
    list_.push_back({begin, end, true});
  }

  void digit_groups(const DigitGroups& groups, const char* begin, const char* end) {
    const char* done = begin;  // end of the last match
    for (const char* p = begin; p < end;) {
      const DigitGroups::Number number = groups.find(p, end);
      if (groups.others && number.begin > p) {
        add(done, p, number.begin);
        done = number.begin;
      }
      p = number.end;
      if (number.digits == 0 || !groups.splits_at(number.end, end)) continue;
      std::size_t n = number.digits % groups.size;
      if (n == 0 && !groups.places) n = groups.size;
      for (const char* at = number.begin; at < number.end; n = groups.size) {
        const char* const stop = DigitGroups::skip(at, number.end, n);
        if (!groups.places || stop < number.end) {
          add(done, groups.places ? stop : at, stop);
          done = stop;
        }
        at = stop;
      }
    }
  }

  void numbers(const char* begin, const char* end, bool runs) {
    const char* from = begin;
    for (const char* p = begin; p < end;) {
      const Char c = decode_char(p, end);
      const char* const next = p + c.bytes;
      if (class_of(c.code_point) == CharClass::number) {
        if (runs && p == from && !list_.empty() && list_.back().match) {
          list_.back().end = next;
        } else {
          add(from, p, next);
        }
        from = next;
      }
      p = next;
    }
  }

  void behave(SplitStep::Behaviour behaviour) {
    using Behaviour = SplitStep::Behaviour;
    if (behaviour == Behaviour::isolated) return;
    if (behaviour == Behaviour::removed) {
      std::erase_if(list_, [](const Span& span) { return span.match; });
      return;
    }
    const bool back = behaviour == Behaviour::with_next;
    if (back) std::ranges::reverse(list_);
    std::vector<Span> merged;
    bool before = false;
    for (const Span& span : list_) {
      const bool joins =
          behaviour == Behaviour::contiguous ? span.match == before : span.match && !before;
      if (joins && !merged.empty()) {
        (back ? merged.back().begin : merged.back().end) = back ? span.begin : span.end;
      } else {
        merged.push_back(span);
      }
      before = span.match;
    }
    if (back) std::ranges::reverse(merged);
    list_ = std::move(merged);
  }

  std::vector<Span> list_;
};

}  // namespace

bool DigitGroups::is_digit(std::uint32_t code_point) const {
  if (code_point < 0x80) return code_point - '0' < 10;
  switch (digits) {
    case Digits::number: return class_of(code_point) == CharClass::number;
    case Digits::decimal:
      return class_of(code_point) == CharClass::number && is_decimal(code_point);
    case Digits::ascii: break;
  }
  return false;
}

DigitGroups::Number DigitGroups::find(const char* p, const char* end) const {
  Number number{end, end, 0};
  for (; p < end;) {
    const Char c = decode_char(p, end);
    if (is_digit(c.code_point)) {
      if (number.digits++ == 0) number.begin = p;
    } else if (number.digits > 0) {
      number.end = p;
      break;
    }
    p += c.bytes;
  }
  return number;
}

bool DigitGroups::splits_at(const char* p, const char* end) const {
  return !word_border || p == end || !is_word_char(decode_char(p, end).code_point);
}

const char* DigitGroups::skip(const char* p, const char* end, std::size_t n) {
  for (; n > 0 && p < end; --n) p += decode_char(p, end).bytes;
  return p;
}

const char* DigitGroups::last_certain_end(const char* begin, const char* end) const {
  const auto digit_before = [&](const char*& p) {
    const char* const before = previous_char(begin, p);
    if (!is_digit(decode_char(before, p).code_point)) return false;
    p = before;
    return true;
  };
  // Returns the number that `end` may cut.
  const char* p = end;
  while (p > begin && digit_before(p)) {}
  if (!places && !word_border && p > begin && p < end) return p;
  while (p > begin) {
    while (p > begin && !is_digit(decode_char(previous_char(begin, p), p).code_point))
      p = previous_char(begin, p);
    if (p == begin) break;
    const char* const stop = p;
    std::size_t n = 0;
    while (p > begin && digit_before(p)) ++n;
    const bool splits = stop < end && splits_at(stop, end);
    // A cut after a number would create a word boundary.
    if (!places && (splits || (others && !word_border))) return stop < end ? stop : nullptr;
    if (places && splits && n >= size) {
      const char* const last = skip(p, stop, n - size);
      if (last > begin) return last;
    }
  }
  return nullptr;
}

std::optional<DigitGroups> digit_groups_of(std::string_view pattern) {
  for (const DigitNames& names : kDigitNames)
    if (const auto groups = read_groups(pattern, names)) return groups;
  return std::nullopt;
}

std::optional<Split::Kind> split_kind_of(std::string_view pattern) {
  const auto found = std::ranges::find(kKnown, pattern, &Known::pattern);
  return found == std::end(kKnown) ? std::nullopt : std::optional(found->kind);
}

std::string_view pattern_of(Split::Kind kind) {
  const auto found = std::ranges::find(kKnown, kind, &Known::kind);
  return found == std::end(kKnown) ? std::string_view{} : found->pattern;
}

void Split::split(
    std::string_view text, std::vector<std::string_view>& out, MatchBudget& budget) const {
  std::vector<std::string_view> pieces;
  out.assign(text.empty() ? 0 : 1, text);
  for (const SplitStep& step : steps_) {
    pieces.swap(out);
    out.clear();
    budget.add(text.size());
    for (const std::string_view piece : pieces) {
      const Spans spans(step, piece.data(), piece.data() + piece.size(), budget);
      for (const Span& span : spans.list())
        out.emplace_back(span.begin, static_cast<std::size_t>(span.end - span.begin));
    }
  }
}

const char* Split::pretoken_end(const char* p, const char* end) const {
  switch (kind_) {
    case Kind::gpt2: return gpt2_pretoken_end(p, end);
    case Kind::llama3: return cl100k_pretoken_end(p, end, 3);
    case Kind::qwen2: return cl100k_pretoken_end(p, end, 1);
    case Kind::o200k: return o200k_pretoken_end(p, end, 3, true);
    case Kind::tekken: return o200k_pretoken_end(p, end, 1, false);
    case Kind::digits_gpt2: return digits_gpt2_pretoken_end(p, end, false);
    case Kind::runs_gpt2: return digits_gpt2_pretoken_end(p, end, true);
    case Kind::none:
    case Kind::steps: break;
  }
  return end;
}

const char* Split::cut(const char* begin, const char* end) const {
  constexpr auto kMax = static_cast<std::ptrdiff_t>(kMaxPretokenBytes);
  if (kind_ == Kind::none || kind_ == Kind::steps) {
    const char* const found = last_certain_end(begin, begin + std::min(end - begin, kMax));
    return found != nullptr ? found : forced_cut(begin, end);
  }
  if (end - begin < 8) return nullptr;
  // The class of the last characters may depend on later bytes, so they are excluded.
  const char* p = end - 4;
  while (p > begin && (static_cast<unsigned char>(*p) & 0xC0) == 0x80) --p;
  if (p <= begin) return nullptr;
  std::uint32_t right = decode_char(p, end).code_point;
  while (p > begin) {
    const char* const before = previous_char(begin, p);
    const std::uint32_t left = decode_char(before, p).code_point;
    if (parts(left, right)) return p;
    p = before;
    right = left;
  }
  if (end - begin <= kMax) return nullptr;
  const char* const found = pretoken_end(begin, end);
  return gpt2_is_certain(found, end) ? found : nullptr;
}

bool Split::parts(std::uint32_t left, std::uint32_t right) const {
  if (kind_ == Kind::none) return true;  // there are no merges
  if (kind_ == Kind::steps) return false;
  const CharClass l = class_of(left), r = class_of(right);
  // A space may belong to the next word. A contraction extends from ' into letters.
  if (kind_ == Kind::gpt2)
    return l != r && l != CharClass::space && !(r == CharClass::letter && left == '\'');
  // No pre-token continues from a character that is not white space to a space.
  if (l == CharClass::space) return false;
  if (right == ' ') return true;
  if (l == CharClass::other) return false;
  // After letters and numbers only marks and, in o200k, contractions continue a pre-token.
  return r == CharClass::space ||
         (r == CharClass::other && right != '\'' && letter_kind_of(right) == LetterKind::none);
}

const char* Split::last_certain_end(const char* begin, const char* end) const {
  if (kind_ != Kind::steps || steps_.empty()) return nullptr;
  const SplitStep& first = steps_.front();
  const bool groups = first.what == SplitStep::What::digit_groups;
  if ((first.what != SplitStep::What::pattern && !groups) ||
      first.behaviour > SplitStep::Behaviour::removed)
    return nullptr;
  // The last character may be incomplete.
  end = end - begin > 4 ? end - 4 : begin;
  while (end > begin && (static_cast<unsigned char>(*end) & 0xC0) == 0x80) --end;
  // The match and its lookaround end before `end`. Text before a match is a piece too.
  if (groups) return first.groups.last_certain_end(begin, end);
  MatchBudget budget;
  budget.add(static_cast<std::size_t>(end - begin));
  const char* last = nullptr;
  Matches matches(first, begin, end);
  while (const auto found = matches.next(budget, true))
    if (found->end > begin) last = found->end;
  return last;
}

}  // namespace text
