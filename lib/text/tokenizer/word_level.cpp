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
      return tokenizer_.id_of({p, bytes}).value_or(tokenizer_.unknown());
    const auto key = WordCache::key_of(p, bytes, end);
    const std::size_t place = WordCache::place_of(key);
    if (const auto* entry = cache_->find(key, place)) return entry->tokens[0];
    const std::uint32_t id = tokenizer_.id_of({p, bytes}).value_or(tokenizer_.unknown());
    cache_->insert(key, place, {&id, 1});
    return id;
  }

  const WordLevel& tokenizer_;
  bool plain_;
  std::size_t seen_ = 0;
  std::unique_ptr<WordCache> cache_;
};

}  // namespace

WordLevel::WordLevel(Vocabulary vocabulary, Options options) : options_(std::move(options)) {
  vocabulary_ = std::move(vocabulary);
  const auto need = [this](const std::string& token) {
    const auto id = id_of(token);
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
  std::vector<std::string> names(size());
  for (std::uint32_t id = 0; id < size(); ++id) names[id] = token(id);
  JsonText json;
  json.open('{').key("added_tokens").raw("[]").key("decoder").raw("null");
  json.key("model").open('{').key("type").string("WordLevel");
  json.key("unk_token").string(options_.unknown);
  append_vocabulary(json.key("vocab"), vocabulary_, names);
  json.close('}').key("normalizer");
  if (options_.newline.empty()) {
    json.raw("null");
  } else {
    json.open('{').key("content").string(" " + options_.newline + " ");
    json.key("pattern").raw(R"({"String":"\n"})").key("type").string("Replace").close('}');
  }
  json.key("padding").raw("null").key("post_processor").raw("null").key("pre_tokenizer");
  json.raw(
      options_.newline.empty()
          ? R"({"type":"WhitespaceSplit"})"
          : R"({"behavior":"Removed","invert":false,"pattern":{"String":" "},"type":"Split"})");
  json.key("truncation").raw("null").key("version").string("1.0").close('}');
  return std::move(json).text();
}

namespace {

const char* cap_of(const char* p, const char* end) {
  return end - p > static_cast<std::ptrdiff_t>(kMaxPretokenBytes) ? p + kMaxPretokenBytes : end;
}

}  // namespace

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

const char* skip_unicode_space(const char* p, const char* end) {
  while (p < end) {
    const Char c = decode_char(p, end);
    if (class_of(c.code_point) != CharClass::space) return p;
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

}  // namespace text
