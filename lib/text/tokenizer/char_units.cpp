#include "text/tokenizer/char_units.h"

#include "text/tokenizer/steps_json.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_cache.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

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
      symbols_.push_back(tokenizer_.id_of(name_).value_or(tokenizer_.unknown()));
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
  const bool special = id == unknown_ || std::any_of(special_.begin(), special_.end(),
                                             [id](const auto& s) { return s.id == id; });
  const bool ends = special || unit.ends_with(kEndOfWord);
  if (ends && !special) unit.remove_suffix(kEndOfWord.size());
  out += unit;
  // Within a word, the next unit is decoded as at the start of a text.
  line_start = !ends;
}

std::string CharUnits::json() const {
  std::vector<std::string> names(size());
  for (std::uint32_t id = 0; id < size(); ++id) names[id] = token(id);
  JsonText json;
  json.open('{');
  append_special_tokens(json, special_);
  json.key("decoder").raw(R"({"suffix":"</w>","type":"BPEDecoder"})");
  json.key("model").open('{');
  json.key("byte_fallback").raw("false").key("continuing_subword_prefix").raw("null");
  json.key("dropout").raw("null").key("end_of_word_suffix").string(kEndOfWord);
  json.key("fuse_unk").raw("false").key("ignore_merges").raw("false").key("merges").open('[');
  for (const Merge& merge : merges_.list()) {
    const auto &left = names[merge.left], &right = names[merge.right];
    if (left.find(' ') == left.npos && right.find(' ') == right.npos)
      json.item().string(left + " " + right);
    else json.item().open('[').item().string(left).item().string(right).close(']');
  }
  json.close(']').key("type").string("BPE").key("unk_token").string(unknown_name_);
  append_vocabulary(json.key("vocab"), vocabulary_, names);
  json.close('}');
  json.key("normalizer").raw("null").key("padding").raw("null").key("post_processor").raw("null");
  json.key("pre_tokenizer").raw(R"({"type":"WhitespaceSplit"})");
  json.key("truncation").raw("null").key("version").string("1.0").close('}');
  return std::move(json).text();
}

}  // namespace text
