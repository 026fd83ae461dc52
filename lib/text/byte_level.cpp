#include "text/byte_level.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "text/byte_alphabet.h"
#include "text/gpt2_split.h"
#include "text/json_text.h"
#include "text/word_cache.h"

namespace text {
namespace {

class BytesEncoder : public Encoder {
 public:
  explicit BytesEncoder(const ByteLevel& tokenizer) {
    for (int b = 0; b < 256; ++b) ids_[b] = tokenizer.id_of_byte(static_cast<unsigned char>(b));
    complete_ = std::find(ids_, ids_ + 256, ByteLevel::kNoToken) == ids_ + 256;
  }
  void encode(std::string_view text, std::vector<std::uint32_t>& out) override {
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

class BpeEncoder : public Encoder {
 public:
  explicit BpeEncoder(const ByteLevel& tokenizer) : tokenizer_(tokenizer) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& out) override {
    seen_ += text.size();
    const char* p = text.data();
    const char* const end = p + text.size();
    // The cache costs a few milliseconds to set up: short texts do without.
    if (!cache_ && seen_ <= kTextForCache) {
      while (p < end) {
        const char* const stop = gpt2_pretoken_end(p, end);
        merge(p, stop);
        out.insert(out.end(), symbols_.begin(), symbols_.end());
        p = stop;
      }
      return;
    }
    if (!cache_) cache_ = std::make_unique<WordCache>();
    while (p < end) p = encode_some(p, end, out);
  }

 private:
  static constexpr std::size_t kTextForCache = 16384, kWords = 64;

  // Up to kWords pre-tokens: first all are split and their places in the cache asked for, then they
  // are looked up, so that the waits for memory overlap.
  const char* encode_some(const char* p, const char* end, std::vector<std::uint32_t>& out) {
    struct {
      const char* begin;
      std::size_t bytes, place;
      WordCache::Key key;
    } words[kWords];
    std::size_t n = 0;
    for (; n < kWords && p < end; ++n) {
      auto& word = words[n];
      word.begin = p;
      p = gpt2_pretoken_end_quick(p, end);
      word.bytes = static_cast<std::size_t>(p - word.begin);
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
        std::copy(symbols_.begin(), symbols_.end(), ids + filled);
        filled += symbols_.size();
      } else {
        out.insert(out.end(), ids, ids + filled);
        filled = 0;
        out.insert(out.end(), symbols_.begin(), symbols_.end());
      }
    }
    out.insert(out.end(), ids, ids + filled);
    return p;
  }

  void merge(const char* p, const char* stop) {
    symbols_.clear();
    if (tokenizer_.whole_words()) {
      if (const auto id = tokenizer_.id_of({p, static_cast<std::size_t>(stop - p)})) {
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
  std::unique_ptr<WordCache> cache_;
  std::size_t seen_ = 0;
  std::vector<std::uint32_t> symbols_;
  MergeTable::Scratch scratch_;
};

}  // namespace

ByteLevel::ByteLevel(Vocabulary vocabulary, std::vector<Merge> merges,
                     std::vector<SpecialToken> special, bool whole_words)
    : whole_words_(whole_words) {
  for (const Merge& merge : merges) {
    for (const std::uint32_t id : {merge.left, merge.right, merge.result})
      if (!vocabulary.has(id)) core::fail(core::Code::bad_data, "a merge of id {}, no token's", id);
  }
  for (const auto& token : special) {
    if (vocabulary.token(token.id) != token.content)
      core::fail(core::Code::bad_data, "special token {} is not in the vocabulary", token.content);
  }
  std::sort(special.begin(), special.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  vocabulary_ = std::move(vocabulary);
  merges_ = MergeTable(std::move(merges));
  special_ = std::move(special);
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    bytes_[b] = id_of(std::string_view(&c, 1)).value_or(kNoToken);
  }
}

TokenizerKind ByteLevel::kind() const {
  return merges_.empty() && !whole_words_ ? TokenizerKind::bytes : TokenizerKind::bpe;
}

std::unique_ptr<Encoder> ByteLevel::encoder() const {
  if (kind() == TokenizerKind::bytes) return std::make_unique<BytesEncoder>(*this);
  return std::make_unique<BpeEncoder>(*this);
}

const char* ByteLevel::cut(const char* begin, const char* end) const {
  return kind() == TokenizerKind::bytes ? end : gpt2_cut(begin, end);
}

void ByteLevel::decode_token(std::uint32_t id, bool& line_start, std::string& out) const {
  if (!vocabulary_.has(id))
    core::fail(core::Code::bad_data, "id {} is not in a vocabulary of {}", id, size());
  line_start = false;
  out += vocabulary_.token(id);
}

std::string ByteLevel::file_name_of(std::uint32_t id) const {
  for (const auto& token : special_)
    if (token.id == id) return token.content;
  std::string name;
  append_in_alphabet(token(id), name);
  return name;
}

std::string ByteLevel::json() const {
  std::vector<std::string> names(size());
  for (std::uint32_t id = 0; id < size(); ++id)
    if (vocabulary_.has(id)) names[id] = file_name_of(id);
  const bool split = kind() == TokenizerKind::bpe;
  JsonText json;
  json.open('{');
  append_special_tokens(json, special_);
  json.key("decoder").raw(
      R"({"add_prefix_space":true,"trim_offsets":true,"type":"ByteLevel","use_regex":true})");
  json.key("model").open('{');
  json.key("byte_fallback").raw("false").key("continuing_subword_prefix").raw("null");
  json.key("dropout").raw("null").key("end_of_word_suffix").raw("null");
  json.key("fuse_unk").raw("false").key("ignore_merges").raw(whole_words_ ? "true" : "false");
  json.key("merges").open('[');
  std::string pair;
  for (const Merge& merge : merges_.list()) {
    pair.assign(names[merge.left]).append(" ").append(names[merge.right]);
    json.item().string(pair);
  }
  json.close(']');
  json.key("type").string("BPE").key("unk_token").raw("null");
  append_vocabulary(json.key("vocab"), vocabulary_, names);
  json.close('}');
  json.key("normalizer").raw("null").key("padding").raw("null").key("post_processor").raw("null");
  json.key("pre_tokenizer").open('{');
  json.key("add_prefix_space").raw("false").key("trim_offsets").raw("true");
  json.key("type").string("ByteLevel").key("use_regex").raw(split ? "true" : "false");
  json.close('}');
  json.key("truncation").raw("null").key("version").string("1.0");
  json.close('}');
  return std::move(json).text();
}

TokenizerPtr make_bytes_tokenizer() {
  Vocabulary vocabulary;
  for (int b = 0; b < 256; ++b) {
    const char c = static_cast<char>(b);
    vocabulary.add(std::string_view(&c, 1));
  }
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::vector<Merge>{},
                                     std::vector<SpecialToken>{});
}

}  // namespace text
