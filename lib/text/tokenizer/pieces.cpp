#include "text/tokenizer/pieces.h"

#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_cache.h"

namespace text {
namespace {

class PiecesEncoder : public Encoder {
 public:
  explicit PiecesEncoder(const Pieces& tokenizer) : tokenizer_(tokenizer) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool continued) override {
    words_.expect(text.size());
    in_parts(tokenizer_, text, continued,
        [&](std::string_view part, bool later) { encode_part(part, later, out); });
  }

 private:
  void encode_part(std::string_view text, bool continued, std::vector<std::uint32_t>& out) {
    tokenizer_.parts().steps.run(
        text, continued,
        [&](std::string_view piece, PiecePosition place) { split(marked(piece, place), out); },
        [&](std::uint32_t id) { out.push_back(id); });
  }

  // Returns the piece with spaces as marks and with the prefix.
  std::string_view marked(std::string_view piece, PiecePosition place) {
    const auto& [mark, prepend, _] = tokenizer_.parts().metaspace;
    if (mark.empty()) return piece;
    using Prepend = Pieces::Metaspace::Prepend;
    const bool wants = (prepend == Prepend::always && place != PiecePosition::continues) ||
                       (prepend == Prepend::first && place == PiecePosition::begins_text);
    marked_.clear();
    if (wants && !piece.starts_with(' ') && !piece.starts_with(mark)) marked_ = mark;
    append_marked(piece, mark, marked_);
    return marked_;
  }

  void split(std::string_view text, std::vector<std::uint32_t>& out) {
    const auto& parts = tokenizer_.parts();
    const auto numbers = [&](std::string_view piece) {
      if (parts.split.kind() != Split::Kind::steps) return words(piece, text, out);
      MatchBudget none;  // it is split at numbers, by no pattern
      parts.split.split(piece, pieces_, none);
      for (const std::string_view part : pieces_) words(part, text, out);
    };
    const std::string& mark = parts.metaspace.mark;
    if (!parts.metaspace.split || mark.empty()) return numbers(text);
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t next = std::min(text.find(mark, from + 1), text.size());
      numbers(text.substr(from, next - from));
      from = next;
    }
  }

  // Encodes one pre-token; `text` contains it.
  void words(std::string_view piece, std::string_view text, std::vector<std::uint32_t>& out) {
    if (tokenizer_.parts().whole_words) {
      if (const auto id = tokenizer_.model_id_of(piece)) {
        out.push_back(*id);
        return;
      }
    }
    const char* const end = piece.data() + piece.size();
    const char* const readable = text.data() + text.size();
    for (const char* p = piece.data(); p < end;) {
      const char* const stop = end_of_joined(p, end, tokenizer_);
      words_.append(p, stop, readable, symbols_, out, [&] {
        merge(p, stop);
        return true;
      });
      p = stop;
    }
  }

  void merge(const char* p, const char* stop) {
    symbols_.clear();
    bool unknown_before = false;
    while (p < stop) {
      const std::uint32_t n = decode_char(p, stop).bytes;
      tokenizer_.append_symbols({p, n}, unknown_before, symbols_);
      p += n;
    }
    tokenizer_.merges().apply(symbols_, scratch_);
  }

  const Pieces& tokenizer_;
  CachedWords words_;
  std::string marked_;
  std::vector<std::string_view> pieces_;
  std::vector<std::uint32_t> symbols_;
  MergeTable::Scratch scratch_;
};

std::uint32_t first_char(std::string_view text) {
  return decode_char(text.data(), text.data() + text.size()).code_point;
}

std::uint32_t last_char(std::string_view text) {
  const char* const end = text.data() + text.size();
  return decode_char(previous_char(text.data(), end), end).code_point;
}

}  // namespace

Pieces::Pieces(Vocabulary vocabulary, std::vector<Merge> merges, Parts parts)
    : parts_(std::move(parts)) {
  for (const Merge& merge : merges)
    for (const std::uint32_t id : {merge.left, merge.right, merge.result})
      if (vocabulary.has(id) && vocabulary.token(id).empty())  // no characters to join
        core::bad_data("a merge with id {}, which is not a token", id);
  take(std::move(vocabulary), merges, std::move(parts_.special));
  template_ = std::move(parts_.around);
  if (!parts_.unknown.empty()) {
    const auto id = id_of(parts_.unknown);
    if (!id) core::bad_data("no token {} in the vocabulary", parts_.unknown);
    unknown_ = *id;
  }
  const auto& [mark, prepend, _] = parts_.metaspace;
  pieces_ = PieceText(*this, parts_.byte_fallback, parts_.steps.normalizer(), parts_.decoder, mark,
      !mark.empty() && prepend != Metaspace::Prepend::never);
  if (parts_.rules) {
    pieces_.set_unknown(unknown_, parts_.rules->unknown);
    silent_.resize(size());
    for (const auto& token : special_) silent_[token.id] = true;
  }
  if (!pieces_.space().empty()) mark_ = first_char(pieces_.space());
  for (const std::string& one : {pieces_.space(), mark})
    if (!one.empty() && decode_char(one.data(), one.data() + one.size()).bytes != one.size())
      core::bad_data("spaces written as \"{}\" are not supported (one character is)", one);
  small_.resize(kSmall * kSmall);
  for (const Merge& merge : merges) {
    byte_merges_ |= pieces_.is_byte(merge.left) || pieces_.is_byte(merge.right);
    const std::uint32_t left = last_char(token(merge.left)), right = first_char(token(merge.right));
    if (place(left) != kNone && place(right) != kNone) {
      small_[place(left) * kSmall + place(right)] = true;
    } else {
      pairs_.insert(static_cast<std::uint64_t>(left) << 32 | right);
    }
  }
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t i = 0; parts_.rules && i < merges.size(); ++i) {
    const auto& tied = parts_.rules->tied;
    const bool same = i > 0 && (merges[i].result == merges[i - 1].result ||
                                   std::ranges::binary_search(tied, merges[i].result));
    ranks.push_back(same ? ranks.back() : i);
  }
  merges_ = MergeTable(std::move(merges), ranks);
}

std::optional<std::uint32_t> Pieces::piece_of(std::string_view character) const {
  const auto id = model_id_of(character);
  return id && !silent_.empty() && silent_[*id] ? std::nullopt : id;
}

bool Pieces::is_known(std::uint32_t code_point) const {
  if (code_point == Char::kInvalid) return false;
  std::string character;
  append_char(character, code_point);
  return piece_of(character).has_value();
}

bool Pieces::joins(std::uint32_t left, std::uint32_t right) const {
  const std::uint32_t l = place(left), r = place(right);
  const bool merged = l != kNone && r != kNone
                          ? small_[l * kSmall + r]
                          : pairs_.count(static_cast<std::uint64_t>(left) << 32 | right) > 0;
  if (merged) return true;
  if (parts_.byte_fallback) return byte_merges_ && (!is_known(left) || !is_known(right));
  // If characters are dropped, their neighbours meet. Adjacent unknown characters may be one token.
  if (unknown_ == kNone) return !is_known(left) || !is_known(right);
  return parts_.fuse_unknown && !is_known(left) && !is_known(right);
}

void Pieces::append_symbols(
    std::string_view character, bool& unknown_before, std::vector<std::uint32_t>& symbols) const {
  const auto id = piece_of(character);
  const bool joined = unknown_before && parts_.fuse_unknown;
  unknown_before = false;
  if (id) {
    symbols.push_back(*id);
  } else if (parts_.byte_fallback) {
    for (const char c : character) symbols.push_back(pieces_.byte_token(c));
  } else if (unknown_ != kNone) {
    if (!joined) symbols.push_back(unknown_);
    unknown_before = true;
  }
}

std::unique_ptr<Encoder> Pieces::encoder() const { return std::make_unique<PiecesEncoder>(*this); }

TokenizerPtr Pieces::parsing_special() const {
  return std::make_shared<Pieces>(
      vocabulary_, merges_.list(), parts_parsing_special(parts_, *this));
}

const char* Pieces::cut(const char* begin, const char* end) const {
  // A pre-token that is a token as a whole must stay whole.
  const bool by_marks = parts_.whole_words;
  return parts_.steps.cut(begin, end, [&](std::uint32_t left, std::uint32_t right) {
    if (left == Char::kInvalid || right == Char::kInvalid) return false;
    const bool space = right == ' ' && !parts_.metaspace.mark.empty();
    if (by_marks) return space && parts_.metaspace.split && left != ' ';
    const auto as_marked = [this](std::uint32_t c) {
      return c == ' ' && !parts_.metaspace.mark.empty() ? mark_ : c;
    };
    const bool digits = parts_.split.kind() == Split::Kind::steps &&
                        class_of(left) == CharClass::number && class_of(right) == CharClass::number;
    return !digits && !joins(as_marked(left), as_marked(right));
  });
}

void Pieces::decode_token(std::uint32_t id, bool& line_start, std::string& out) const {
  expect_token(id);
  pieces_.decode(id, token(id), line_start, out);
}

std::string Pieces::json() const {
  const auto names = names_of(*this);
  // Tokens may hold spaces, so that a merge is two strings.
  const auto merges = merges_text(merges_.list(), names, true);
  // Another reader of the file merges a symbol, which the pre-tokenizer isolates, unless told.
  const bool symbols = parts_.rules && !parts_.rules->symbols.empty();
  auto model = bpe_model({{"byte_fallback", parts_.byte_fallback},
      {"fuse_unk", parts_.fuse_unknown}, {"ignore_merges", parts_.whole_words || symbols}});
  if (parts_.rules) model["sentencepiece"] = rules_json(*parts_.rules);
  if (!parts_.unknown.empty()) model["unk_token"] = parts_.unknown;
  std::vector<core::Json> splits;
  const auto& [mark, prepend, split] = parts_.metaspace;
  constexpr std::string_view kNames[] = {"never", "first", "always"};
  if (!mark.empty())
    splits.push_back({{"prepend_scheme", kNames[static_cast<std::size_t>(prepend)]},
        {"replacement", mark}, {"split", split}, {"type", "Metaspace"}});
  if (parts_.split.kind() == Split::Kind::steps)
    splits.push_back(split_step_json(parts_.split.steps().front()));
  return tokenizer_text(*this,
      {{"added_tokens", added_tokens_json(parts_.steps, special_)},
          {"decoder", pieces_.decoder_json()},
          {"normalizer", normalizer_json(parts_.steps.normalizer())},
          {"pre_tokenizer", parts_.rules ? rules_split_json(parts_.steps,
                                               pattern_of(symbols_of(*parts_.rules, vocabulary_)))
                                         : sequence_json("pretokenizers", std::move(splits))}},
      model, {{"merges", merges}, {"vocab", vocabulary_text(vocabulary_, names, parts_.steps)}});
}

}  // namespace text
