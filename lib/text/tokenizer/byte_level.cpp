#include "text/tokenizer/byte_level.h"

#include "text/tokenizer/steps_json.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_cache.h"

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

constexpr std::size_t kLongest = 4096;  // bytes of a token that is looked for at each place

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

class BytesEncoder : public Encoder {
 public:
  explicit BytesEncoder(const ByteLevel& tokenizer) {
    for (int b = 0; b < 256; ++b) ids_[b] = tokenizer.id_of_byte(static_cast<unsigned char>(b));
    complete_ = std::find(ids_, ids_ + 256, ByteLevel::kNoToken) == ids_ + 256;
  }
  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool /*continued*/) override {
    const std::size_t start = out.size();
    out.resize(start + text.size());
    std::uint32_t* to = out.data() + start;
    for (const char c : text) *to++ = ids_[static_cast<unsigned char>(c)];
    if (!complete_) std::erase(out, ByteLevel::kNoToken);
  }

 private:
  std::uint32_t ids_[256];
  bool complete_;
};

class LongestEncoder : public Encoder {
 public:
  explicit LongestEncoder(const ByteLevel& tokenizer) : tokenizer_(tokenizer) {}
  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool continued) override {
    tokenizer_.steps().run(
        text, continued,
        [&](std::string_view piece, PiecePosition) { tokenizer_.encode_longest(piece, out); },
        [&](std::uint32_t id) { out.push_back(id); });
  }

 private:
  const ByteLevel& tokenizer_;
};

template <bool kRuns> const char* digits_end(const char* p, const char* end) {
  return digits_gpt2_pretoken_end(p, end, kRuns);
}

class BpeEncoder : public Encoder {
 public:
  explicit BpeEncoder(const ByteLevel& tokenizer)
      : tokenizer_(tokenizer),
        plain_(tokenizer.steps().empty() && tokenizer.split().kind() != Split::Kind::steps) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool continued) override {
    if (plain_) {
      encode_normal(text, out);
      return;
    }
    budget_ = {};
    in_parts(tokenizer_, text, continued,
        [&](std::string_view part, bool later) { encode_part(part, out, later); });
  }

 private:
  static constexpr std::size_t kTextForCache = 16384, kWords = 64;

  struct Word {
    const char* begin;
    std::size_t bytes, place;
    WordCache::Key key;
  };

  void encode_part(std::string_view text, std::vector<std::uint32_t>& out, bool continued) {
    tokenizer_.steps().run(
        text, continued, [&](std::string_view piece, PiecePosition) { encode_normal(piece, out); },
        [&](std::uint32_t id) { out.push_back(id); });
  }

  // Encodes a text that needs only splitting and merging.
  void encode_normal(std::string_view text, std::vector<std::uint32_t>& out) {
    seen_ += text.size();
    // Skip the cache for short texts, because its allocation takes a few milliseconds.
    if (!cache_ && seen_ > kTextForCache) cache_ = std::make_unique<WordCache>();
    switch (tokenizer_.split().kind()) {
      case Split::Kind::gpt2: return encode_by<gpt2_pretoken_end_quick>(text, out);
      case Split::Kind::llama3: return encode_by<cl100k_pretoken_end_quick<3>>(text, out);
      case Split::Kind::qwen2: return encode_by<cl100k_pretoken_end_quick<1>>(text, out);
      case Split::Kind::o200k: return encode_by<o200k_pretoken_end_quick<3, true>>(text, out);
      case Split::Kind::tekken: return encode_by<o200k_pretoken_end_quick<1, false>>(text, out);
      case Split::Kind::digits_gpt2: return encode_by<digits_end<false>>(text, out);
      case Split::Kind::runs_gpt2: return encode_by<digits_end<true>>(text, out);
      case Split::Kind::none:
      case Split::Kind::steps: break;
    }
    tokenizer_.split().split(text, pieces_, budget_);
    const char* const end = text.data() + text.size();
    for (std::size_t i = 0; i < pieces_.size();) {
      encode_some(
          end,
          [&](Word& word) {
            if (i == pieces_.size()) return false;
            word.begin = pieces_[i].data();
            word.bytes = pieces_[i++].size();
            return true;
          },
          out);
    }
  }

  // kEnd is a state machine, which inlines its common case.
  template <const char* kEnd(const char* p, const char* end)>
  void encode_by(std::string_view text, std::vector<std::uint32_t>& out) {
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
      encode_some(
          end,
          [&](Word& word) {
            if (p == end) return false;
            word.begin = p;
            p = kEnd(p, end);
            word.bytes = static_cast<std::size_t>(p - word.begin);
            return true;
          },
          out);
    }
  }

  // Encodes up to kWords pre-tokens. It first splits all of them and prefetches their cache
  // entries, then looks them up, so that the memory latencies overlap. next(word) returns false at
  // the end.
  template <class Next>
  void encode_some(const char* end, Next next, std::vector<std::uint32_t>& out) {
    if (!cache_) {
      for (Word word; next(word);) {
        merge(word.begin, word.begin + word.bytes);
        out.insert(out.end(), symbols_.begin(), symbols_.end());
      }
      return;
    }
    Word words[kWords];
    std::size_t n = 0;
    for (; n < kWords && next(words[n]); ++n) {
      auto& word = words[n];
      if (word.bytes > WordCache::kMaxBytes) continue;
      word.key = WordCache::key_of(word.begin, word.bytes, end);
      word.place = WordCache::place_of(word.key);
      cache_->prefetch(word.place);
    }
    std::uint32_t ids[kWords * WordCache::kMaxTokens];
    std::size_t filled = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto& word = words[i];
      const bool is_short = word.bytes <= WordCache::kMaxBytes;
      const auto* entry = is_short ? cache_->find(word.key, word.place) : nullptr;
      if (entry != nullptr) {
        std::memcpy(ids + filled, entry->tokens, sizeof entry->tokens);
        filled += entry->n_tokens;
        continue;
      }
      merge(word.begin, word.begin + word.bytes);
      if (symbols_.size() <= WordCache::kMaxTokens) {
        if (is_short) cache_->insert(word.key, word.place, symbols_);
        std::ranges::copy(symbols_, ids + filled);
        filled += symbols_.size();
      } else {
        out.insert(out.end(), ids, ids + filled);
        filled = 0;
        out.insert(out.end(), symbols_.begin(), symbols_.end());
      }
    }
    out.insert(out.end(), ids, ids + filled);
  }

  void merge(const char* p, const char* stop) {
    symbols_.clear();
    if (tokenizer_.whole_words()) {
      if (const auto id = tokenizer_.model_id_of({p, static_cast<std::size_t>(stop - p)})) {
        symbols_.push_back(*id);
        return;
      }
    }
    for (; p < stop; ++p) {
      const std::uint32_t id = tokenizer_.id_of_byte(static_cast<unsigned char>(*p));
      if (id != ByteLevel::kNoToken) symbols_.push_back(id);
    }
    tokenizer_.merges().apply(symbols_, scratch_);
  }

  const ByteLevel& tokenizer_;
  const bool plain_;  // no steps before splitting, no pieces
  std::vector<std::string_view> pieces_;
  MatchBudget budget_;  // budget of the text
  std::unique_ptr<WordCache> cache_;
  std::size_t seen_ = 0;
  std::vector<std::uint32_t> symbols_;
  MergeTable::Scratch scratch_;
};

core::Json pre_tokenizer_of(const ByteLevel& tokenizer) {
  using What = SplitStep::What;
  const auto kind = tokenizer.split().kind();
  const bool merged = tokenizer.kind() == TokenizerKind::bpe;
  auto steps = kind == Split::Kind::steps ? tokenizer.split().steps() : std::vector<SplitStep>{};
  // ByteLevel itself includes GPT-2's pattern.
  bool last_is_gpt2 = merged && kind == Split::Kind::gpt2;
  if (merged && (kind == Split::Kind::digits_gpt2 || kind == Split::Kind::runs_gpt2)) {
    steps.push_back({kind == Split::Kind::runs_gpt2 ? What::numbers : What::each_number});
    last_is_gpt2 = true;
  } else if (merged && !pattern_of(kind).empty() && !last_is_gpt2) {
    steps.push_back({What::pattern});
    steps.back().text = pattern_of(kind);
  } else if (!steps.empty() && steps.back().what == What::gpt2) {
    steps.pop_back();
    last_is_gpt2 = true;
  }
  std::vector<core::Json> list;
  for (const SplitStep& step : steps) list.push_back(split_step_json(step));
  list.push_back({{"add_prefix_space", false}, {"trim_offsets", true}, {"type", "ByteLevel"},
      {"use_regex", last_is_gpt2}});
  return sequence_json("pretokenizers", std::move(list));
}

}  // namespace

void append_in_alphabet(std::string_view bytes, std::string& out) {
  const Tables& t = tables();
  for (const char b : bytes) append_char(out, t.character[static_cast<unsigned char>(b)]);
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
    const auto value = kDigits.find(c);
    if (value == kDigits.npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if ((n += 6) >= 8) bytes += static_cast<char>(bits >> (n -= 8) & 0xFF);
  }
  return bytes;
}

ByteLevel::ByteLevel(Vocabulary vocabulary, std::vector<Merge> merges, Parts parts)
    : parts_(std::move(parts)) {
  take(std::move(vocabulary), merges, std::move(parts_.special));
  merges_ = MergeTable(std::move(merges));
  template_ = std::move(parts_.around);
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    bytes_[b] = model_id_of(std::string_view(&c, 1)).value_or(kNoToken);
    if (parts_.longest && bytes_[b] == kNoToken) core::bad_data("no token for byte {}", b);
  }
  if (!parts_.longest) return;
  std::vector<bool> special(size());
  for (const auto& token : special_) special[token.id] = true;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < size(); ++id)
    if (!special[id] && model_id_of(token(id)) == id) ids.push_back(id);
  prefixes_ = Prefixes(vocabulary_, std::move(ids));
  if (!merges_.empty() || parts_.split.kind() != Split::Kind::none || !parts_.steps.plain())
    core::bad_data(
        "the longest token that matches, with merges, a split, a normalizer or added tokens in a "
        "text, is not supported");
  if (prefixes_.longest() > kLongest)
    core::bad_data(
        "a token of {} bytes is too long to look for at each place of a text", prefixes_.longest());
}

TokenizerKind ByteLevel::kind() const {
  if (parts_.longest) return TokenizerKind::longest;
  return merges_.empty() && !parts_.whole_words && parts_.steps.plain() ? TokenizerKind::bytes
                                                                        : TokenizerKind::bpe;
}

std::unique_ptr<Encoder> ByteLevel::encoder() const {
  if (parts_.longest) return std::make_unique<LongestEncoder>(*this);
  if (kind() == TokenizerKind::bytes && parts_.steps.empty())
    return std::make_unique<BytesEncoder>(*this);
  return std::make_unique<BpeEncoder>(*this);
}

TokenizerPtr ByteLevel::parsing_special() const {
  return std::make_shared<ByteLevel>(
      vocabulary_, merges_.list(), parts_parsing_special(parts_, *this));
}

const char* ByteLevel::cut(const char* begin, const char* end) const {
  const TextSteps& steps = parts_.steps;
  if (parts_.longest) {
    // A token ends for certain where no token that begins before it could reach `end`.
    const auto reach = static_cast<std::ptrdiff_t>(prefixes_.longest()) + steps.reach();
    const char *const stop = cap_of(begin, end), *cut = begin;
    for (const auto id : encode({begin, stop})) {
      const auto bytes = static_cast<std::ptrdiff_t>(token(id).size());
      if (stop - cut < bytes + reach) break;
      cut += bytes;
    }
    return cut > begin ? cut : nullptr;
  }
  if (kind() == TokenizerKind::bytes && steps.empty()) return end;
  if (steps.empty()) return parts_.split.cut(begin, end);
  if (parts_.split.kind() == Split::Kind::steps) {
    const char* const stop = begin + std::min<std::ptrdiff_t>(end - begin, kMaxPretokenBytes);
    const std::ptrdiff_t looked_at = stop - begin - steps.reach();
    const char* const found =
        looked_at > 0 ? parts_.split.last_certain_end(begin, begin + looked_at) : nullptr;
    return found != nullptr && steps.leave(begin, stop, found) ? found : forced_cut(begin, end);
  }
  return steps.cut(begin, end,
      [this](std::uint32_t left, std::uint32_t right) { return parts_.split.parts(left, right); });
}

void ByteLevel::decode_token(std::uint32_t id, bool& line_start, std::string& out) const {
  expect_token(id);
  line_start = false;
  out += vocabulary_.token(id);
}

void ByteLevel::encode_longest(std::string_view text, std::vector<std::uint32_t>& out) const {
  for (std::size_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    std::uint32_t longest = 0;
    prefixes_.each(text, [&](auto size, auto id) { bytes = size, longest = id; });
    out.push_back(longest);
  }
}

std::vector<std::string> ByteLevel::file_names() const {
  std::vector<std::string> names(size());
  for (const auto& token : parts_.steps.added()) names[token.id] = token.content;
  for (const auto& token : special_) names[token.id] = token.content;
  for (std::uint32_t id = 0; id < size(); ++id)
    if (vocabulary_.has(id) && names[id].empty()) append_in_alphabet(token(id), names[id]);
  return names;
}

std::string ByteLevel::json() const {
  const auto names = file_names();
  std::map<std::string, std::string> large = {
      {"vocab", vocabulary_text(vocabulary_, names, parts_.steps)}};
  if (!parts_.longest) large["merges"] = merges_text(merges_.list(), names);
  return tokenizer_text(*this,
      {{"added_tokens", added_tokens_json(parts_.steps, special_)},
          {"decoder", {{"add_prefix_space", true}, {"trim_offsets", true}, {"type", "ByteLevel"},
                          {"use_regex", true}}},
          {"normalizer", normalizer_json(parts_.steps.normalizer())},
          {"pre_tokenizer", pre_tokenizer_of(*this)}},
      parts_.longest
          ? core::Json{{"continuing_subword_prefix", ""}, {"max_input_chars_per_word", 1000000000},
                {"type", "WordPiece"}, {"unk_token", special_.empty() ? "" : special_[0].content}}
          : bpe_model({{"ignore_merges", parts_.whole_words}}),
      std::move(large));
}

TokenizerPtr make_bytes_tokenizer() {
  Vocabulary vocabulary;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    vocabulary.add(std::string_view(&c, 1));
  }
  return std::make_shared<ByteLevel>(
      std::move(vocabulary), std::vector<Merge>{}, ByteLevel::Parts{});
}

}  // namespace text
