#include "text/tokenizer/text_steps.h"

#include "text/tokenizer/utf8.h"

namespace text {
namespace {

constexpr auto kMax = static_cast<std::ptrdiff_t>(kMaxPretokenBytes);
constexpr std::ptrdiff_t kLook = 65536;  // bytes that are searched for a place before more is read
constexpr std::ptrdiff_t kWork = 512;    // bytes looked at for each byte that is searched
constexpr std::ptrdiff_t kNear = 24;     // bytes of the characters around a position

std::string_view view(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Normalises a part of a text. Returns nothing if the normalizer refuses the part as too long; the
// whole text may still be valid.
std::optional<std::string_view> normal_part(
    const Normalizer& normalizer, std::string_view part, std::string& buffer) {
  try {
    return normalizer.apply(part, false, buffer);
  } catch (const core::Error&) { return std::nullopt; }
}

bool is_inert_at(const char* p, const char* end) {
  return static_cast<unsigned char>(*p) < 0x80 ||
         Normalizer::is_inert(decode_char(p, end).code_point);
}

}  // namespace

TextSteps::TextSteps(
    std::vector<AddedToken> added, Normalizer normalizer, std::vector<AddedToken> symbols)
    : added_(std::move(added)), symbols_(std::move(symbols)), normalizer_(std::move(normalizer)) {
  for (const NormalStep& step : normalizer_.steps()) {
    const char* const from = step.from.data();
    if (step.what == NormalStep::What::replace &&
        (step.from.empty() || decode_char(from, from + step.from.size()).bytes != step.from.size()))
      core::bad_data(
          "the normalizer Replace of \"{}\" is not supported (of one character it is)", step.from);
  }
  find(added_);
  plain_ = empty();
}

TextSteps TextSteps::with_special(const std::vector<AddedToken>& special) const {
  TextSteps steps = *this;
  std::vector<AddedToken> tokens = added_.empty() ? special : added_;
  for (AddedToken& token : tokens) token.special = false;
  steps.find(tokens);
  return steps;
}

// Makes what finds tokens in a text.
void TextSteps::find(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> raw, normalized = symbols_, either = symbols_;
  for (const AddedToken& token : tokens) {
    if (!token.normalized) {
      raw.push_back(token);
      continue;
    }
    std::string buffer;
    normalized.push_back(token);
    normalized.back().content = normalizer_.apply(token.content, true, buffer);
    either.push_back(normalized.back());
    either.push_back(token);
    either.back().content = normalizer_.apply(token.content, false, buffer);
  }
  raw_ = AddedMatcher(std::move(raw));
  normalized_ = AddedMatcher(std::move(normalized));
  either_ = AddedMatcher(std::move(either));
  const auto longest =
      std::max({raw_.longest(), normalized_.longest(), normalizer_.longest_symbol()});
  reach_ = static_cast<std::ptrdiff_t>(4 * longest + 64);
}

void TextSteps::run(std::string_view text, bool continued,
    const std::function<void(std::string_view, PiecePosition)>& take_text,
    const std::function<void(std::uint32_t)>& take_token) const {
  const char* const begin = text.data();
  std::string buffer;
  std::size_t room = Normalizer::room_of(text.size());
  const auto take_piece = [&](std::string_view piece) {
    const PiecePosition place = piece.data() != begin ? PiecePosition::after_token
                                : continued           ? PiecePosition::continues
                                                      : PiecePosition::begins_text;
    const std::string_view normal = normalizer_.apply(piece, place, buffer, room);
    room -= std::min(room, normal.size());
    if (normalized_.empty()) {
      if (!normal.empty()) take_text(normal, place);
      return;
    }
    normalized_.each(
        normal,
        [&](std::string_view part) {
          take_text(part, part.data() == normal.data() ? place : PiecePosition::after_token);
        },
        take_token);
  };
  if (raw_.empty()) {
    if (!text.empty()) take_piece(text);
  } else {
    raw_.each(text, take_piece, take_token);
  }
}

bool TextSteps::may_cut(const char* begin, const char* at, const char* end, const Parts& parts,
    std::ptrdiff_t& work) const {
  ++work;
  if (!is_inert_at(at, end)) return false;
  // A space, or a character that may become one.
  const auto before = static_cast<unsigned char>(at[-1]);
  if (normalizer_.counts_spaces() && (before <= ' ' || before >= 0x80)) return false;
  // The characters around a position mostly refuse it, so they are normalised first.
  std::string left_buffer, right_buffer;
  std::optional<std::string_view> left, right;
  const auto normalise = [&](const char* from, const char* to) {
    work += to - from;
    left = normal_part(normalizer_, view(from, at), left_buffer);
    right = normal_part(normalizer_, view(at, to), right_buffer);
    return left && right && !left->empty() && !right->empty();
  };
  const auto sides_part = [&] {
    const char* const left_end = left->data() + left->size();
    return parts(decode_char(previous_char(left->data(), left_end), left_end).code_point,
        decode_char(right->data(), right->data() + right->size()).code_point);
  };
  const char* near = previous_char(begin, at);
  while (near > begin && at - near < kNear && !is_inert_at(near, end))
    near = previous_char(begin, near);
  const char* after = at + decode_char(at, end).bytes;
  while (after < end && after - at < kNear && !is_inert_at(after, end))
    after += decode_char(after, end).bytes;
  if (normalise(near, after) && !sides_part()) return false;

  const char* from = at - std::min(at - begin, reach_);
  while (from < at && from > begin &&
         ((static_cast<unsigned char>(*from) & 0xC0) == 0x80 || !is_inert_at(from, end)))
    ++from;
  const char* to = char_start(at, at + std::min(end - at, reach_));
  while (to > at && to < end && !is_inert_at(to, end)) to = previous_char(at, to);
  work += std::min(at - begin, reach_) + std::min(end - at, reach_);
  if (from >= at || to <= at) return false;
  const auto place = static_cast<std::size_t>(at - from);
  if (raw_.touches(view(from, to), place) || !normalizer_.parts_at(view(from, to), place))
    return false;
  if (!normalise(from, to)) return false;
  if (!normalized_.empty() && either_.touches(std::string(*left).append(*right), left->size()))
    return false;
  return sides_part();
}

const char* TextSteps::cut(const char* begin, const char* end, const Parts& parts) const {
  const std::ptrdiff_t size = end - begin;
  const char* const stop = begin + std::min(size - reach_, kMax);
  if (stop <= begin) return nullptr;
  const char* const lowest = size > kMax ? begin : std::max(begin, stop - kLook);
  std::ptrdiff_t work = 0;
  const std::ptrdiff_t most = kWork * (stop - lowest + 2 * reach_);
  for (const char* p = char_start(begin, stop); p > lowest && work < most;
       p = previous_char(begin, p))
    if (may_cut(begin, p, end, parts, work)) return p;
  return forced_cut(begin, end - std::min(size, reach_));
}

bool TextSteps::leave(const char* begin, const char* end, const char* at) const {
  const std::string_view text = view(begin, end);
  const auto place = static_cast<std::size_t>(at - begin);
  if (end - at < reach_ || !is_inert_at(at, end)) return false;
  std::string buffer;
  const auto normal = normal_part(normalizer_, text, buffer);
  if (!normal || normal->data() != begin) return false;
  bool plain = true;
  for (const AddedMatcher* matcher : {&raw_, &either_}) {
    matcher->each(
        text, [](std::string_view) {}, [&](std::uint32_t) { plain = false; });
    plain = plain && !matcher->touches(text, place);
  }
  return plain;
}

const char* forced_cut(const char* begin, const char* end) {
  if (end - begin <= kMax + 4) return nullptr;
  const char* p = begin + kMax;
  for (int i = 0; i < 3 && (static_cast<unsigned char>(*p) & 0xC0) == 0x80; ++i) ++p;
  return p;
}

}  // namespace text
