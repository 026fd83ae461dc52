#include "text/tokenizer/word_level.h"

#include "text/tokenizer/steps_json.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_cache.h"

namespace text {
namespace {

class WordEncoder : public Encoder {
 public:
  explicit WordEncoder(const WordLevel& tokenizer)
      : tokenizer_(tokenizer), plain_(tokenizer.newline() != WordLevel::kNoToken) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool /*continued*/) override {
    seen_ += text.size();
    if (!cache_ && seen_ > kTextForCache) cache_ = std::make_unique<WordCache>();
    const char* p = text.data();
    const char* const end = p + text.size();
    if (plain_) {
      while (p < end) {
        if (*p == ' ') {
          ++p;
        } else if (*p == '\n') {
          out.push_back(tokenizer_.newline());
          ++p;
        } else {
          const char* const stop = plain_word_end(p, end);
          out.push_back(id_of(p, stop, end));
          p = stop;
        }
      }
      return;
    }
    while ((p = skip_unicode_space(p, end)) < end) {
      const char* const stop = unicode_word_end(p, end);
      out.push_back(id_of(p, stop, end));
      p = stop;
    }
  }

 private:
  static constexpr std::size_t kTextForCache = 16384;

  std::uint32_t id_of(const char* p, const char* stop, const char* end) {
    const auto bytes = static_cast<std::size_t>(stop - p);
    if (!cache_ || bytes > WordCache::kMaxBytes)
      return tokenizer_.model_id_of({p, bytes}).value_or(tokenizer_.unknown());
    const auto key = WordCache::key_of(p, bytes, end);
    const std::size_t place = WordCache::place_of(key);
    if (const auto* entry = cache_->find(key, place)) return entry->tokens[0];
    const std::uint32_t id = tokenizer_.model_id_of({p, bytes}).value_or(tokenizer_.unknown());
    cache_->insert(key, place, {&id, 1});
    return id;
  }

  const WordLevel& tokenizer_;
  bool plain_;
  std::size_t seen_ = 0;
  std::unique_ptr<WordCache> cache_;
};

class UnitsEncoder : public Encoder {
 public:
  explicit UnitsEncoder(const CharUnits& tokenizer) : tokenizer_(tokenizer) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool /*continued*/) override {
    words_.expect(text.size());
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); (p = skip_unicode_space(p, end)) < end;) {
      const char* const stop = unicode_word_end(p, end);
      words_.append(p, stop, end, symbols_, out, [&] {
        cut_up(p, stop);
        return true;
      });
      p = stop;
    }
  }

 private:
  void cut_up(const char* p, const char* stop) {
    symbols_.clear();
    while (p < stop) {
      const std::uint32_t n = decode_char(p, stop).bytes;
      name_.assign(p, n);
      p += n;
      if (p == stop) name_ += CharUnits::kEndOfWord;
      symbols_.push_back(tokenizer_.model_id_of(name_).value_or(tokenizer_.unknown()));
    }
    tokenizer_.merges().apply(symbols_, scratch_);
  }

  const CharUnits& tokenizer_;
  CachedWords words_;
  std::vector<std::uint32_t> symbols_;
  MergeTable::Scratch scratch_;
  std::string name_;
};

}  // namespace

WordLevel::WordLevel(Vocabulary vocabulary, Options options) : options_(std::move(options)) {
  vocabulary_ = std::move(vocabulary);
  const auto need = [this](const std::string& token) {
    const auto id = model_id_of(token);
    if (!id) core::bad_data("no token {} in the vocabulary", token);
    return *id;
  };
  unknown_ = need(options_.unknown);
  if (!options_.newline.empty()) newline_ = need(options_.newline);
}

std::unique_ptr<Encoder> WordLevel::encoder() const { return std::make_unique<WordEncoder>(*this); }

const char* WordLevel::cut(const char* begin, const char* end) const {
  return newline_ == kNoToken ? unicode_word_cut(begin, end) : plain_word_cut(begin, end);
}

void WordLevel::decode_token(std::uint32_t id, bool& line_start, std::string& out) const {
  expect_token(id);
  if (id == newline_) {
    out += '\n';
    line_start = true;
    return;
  }
  if (!line_start) out += ' ';
  out += vocabulary_.token(id);
  line_start = false;
}

std::string WordLevel::json() const {
  core::Json normalizer, split = {{"type", "WhitespaceSplit"}};
  if (!options_.newline.empty()) {
    normalizer = {{"content", " " + options_.newline + " "}, {"pattern", {{"String", "\n"}}},
        {"type", "Replace"}};
    split = {{"behavior", "Removed"}, {"invert", false}, {"pattern", {{"String", " "}}},
        {"type", "Split"}};
  }
  std::vector<SpecialToken> added;
  for (std::uint32_t id = 0; id < size(); ++id)
    if (vocabulary_.is_nameless(id)) added.push_back({id, std::string(token(id))});
  return tokenizer_text(*this,
      {{"added_tokens", added_tokens_json({}, added)}, {"decoder", nullptr},
          {"normalizer", normalizer}, {"pre_tokenizer", split}},
      {{"type", "WordLevel"}, {"unk_token", options_.unknown}},
      {{"vocab", vocabulary_text(vocabulary_, names_of(*this))}});
}

const char* plain_word_end(const char* p, const char* end) {
  const char* const cap = cap_of(p, end);
#ifdef __SSE2__
  const __m128i space = _mm_set1_epi8(' '), newline = _mm_set1_epi8('\n');
  while (cap - p >= 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto stops = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, space), _mm_cmpeq_epi8(v, newline))));
    if (stops) return p + std::countr_zero(stops);
    p += 16;
  }
#endif
  while (p < cap && *p != ' ' && *p != '\n') ++p;
  return p;
}

const char* plain_word_cut(const char* begin, const char* end) {
  for (const char* p = end; p > begin; --p)
    if (p[-1] == ' ' || p[-1] == '\n') return p;
  const char* cap = cap_of(begin, end);
  return cap < end ? cap : nullptr;
}

const char* unicode_word_end(const char* p, const char* end) {
  const char* const cap = cap_of(p, end);
  while (p < cap) {
    const Char c = decode_char(p, end);
    if (class_of(c.code_point) == CharClass::space) return p;
    p += c.bytes;
  }
  return p;
}

const char* unicode_word_cut(const char* begin, const char* end) {
  // ASCII white space always ends a character; other white space is found too, but only whole.
  for (const char* p = end; p > begin; p = previous_char(begin, p)) {
    const char* before = previous_char(begin, p);
    if (class_of(decode_char(before, p).code_point) == CharClass::space) return p;
  }
  const char* const limit = end - std::min<std::ptrdiff_t>(4, end - begin);
  const char* found = unicode_word_end(begin, end);
  return found < limit ? found : nullptr;
}

CharUnits::CharUnits(Vocabulary vocabulary, std::vector<Merge> merges,
    std::vector<SpecialToken> special, std::string unknown)
    : unknown_name_(std::move(unknown)) {
  take(std::move(vocabulary), merges, std::move(special));
  const auto id = id_of(unknown_name_);
  if (!id) core::bad_data("no token {} in the vocabulary", unknown_name_);
  unknown_ = *id;
  merges_ = MergeTable(std::move(merges));
}

std::unique_ptr<Encoder> CharUnits::encoder() const {
  return std::make_unique<UnitsEncoder>(*this);
}

const char* CharUnits::cut(const char* begin, const char* end) const {
  return unicode_word_cut(begin, end);
}

void CharUnits::decode_token(std::uint32_t id, bool& line_start, std::string& out) const {
  expect_token(id);
  std::string_view unit = vocabulary_.token(id);
  if (!line_start) out += ' ';
  const bool special =
      id == unknown_ || std::ranges::any_of(special_, [id](const auto& s) { return s.id == id; });
  const bool ends = special || unit.ends_with(kEndOfWord);
  if (ends && !special) unit.remove_suffix(kEndOfWord.size());
  out += unit;
  // Within a word, the next unit is decoded as at the start of a text.
  line_start = !ends;
}

std::string CharUnits::json() const {
  const auto names = names_of(*this);
  return tokenizer_text(*this,
      {{"added_tokens", added_tokens_json({}, special_)},
          {"decoder", {{"suffix", kEndOfWord}, {"type", "BPEDecoder"}}}, {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}}},
      bpe_model({{"end_of_word_suffix", kEndOfWord}, {"unk_token", unknown_name_}}),
      {{"merges", merges_text(merges_.list(), names)},
          {"vocab", vocabulary_text(vocabulary_, names)}});
}

}  // namespace text
