#include "text/tokenizer/unigram.h"

#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_cache.h"

namespace text {
namespace {

class UnigramEncoder : public Encoder {
 public:
  explicit UnigramEncoder(const Unigram& tokenizer) : tokenizer_(tokenizer) {}

  void encode(std::string_view text, std::vector<std::uint32_t>& out, bool continued) override {
    words_.expect(text.size());
    seen_ = continued || !tokenizer_.parts().rules ? Unigram::kSummed : 0;
    sum_ = 0;
    in_parts(tokenizer_, text, continued, [&](std::string_view part, bool later) {
      tokenizer_.parts().steps.run(
          part, later, [&](std::string_view piece, PiecePosition) { stretches(piece, out); },
          [&](std::uint32_t id) {
            out.push_back(id);
            seen_ += tokenizer_.token(id).size();
            sum_ = 0;  // sentencepiece encodes the text after it alone
          });
    });
  }

 private:
  void stretches(std::string_view text, std::vector<std::uint32_t>& out) {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const char* const stop = end_of_joined(p, end, tokenizer_);
      const auto bytes = static_cast<std::size_t>(stop - p), before = out.size();
      if (seen_ >= Unigram::kSummed) sum_ = 0;
      bool cached = true;
      const auto encode = [&] {
        cached = false;
        tokens_.clear();
        return tokenizer_.encode_stretch({p, bytes}, sum_, steps_, tokens_);
      };
      words_.append(p, stop, end, tokens_, out, encode, std::abs(sum_) < Unigram::kFineSum);
      if (cached && seen_ < Unigram::kSummed)
        sum_ = tokenizer_.added(sum_, std::span(out).subspan(before));
      seen_ += bytes;
      p = stop;
    }
  }

  const Unigram& tokenizer_;
  CachedWords words_;
  std::vector<Unigram::Step> steps_;
  double sum_ = 0;        // of the scores of the text so far
  std::size_t seen_ = 0;  // its bytes
  std::vector<std::uint32_t> tokens_;
};

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | right;
}

}  // namespace

Unigram::Unigram(Vocabulary vocabulary, Parts parts) : parts_(std::move(parts)) {
  take(std::move(vocabulary), {}, std::move(parts_.special));
  template_ = std::move(parts_.around);
  if (parts_.unknown >= parts_.scores.size())
    core::bad_data(
        "the unknown token has id {}, of {} pieces", parts_.unknown, parts_.scores.size());
  pieces_ = PieceText(*this, parts_.byte_fallback, parts_.steps.normalizer(), parts_.decoder);
  std::vector<bool> silent(size());
  silent[parts_.unknown] = true;
  for (const auto& token : special_) silent[token.id] = true;
  std::vector<bool> symbol(size());
  if (parts_.rules) {
    pieces_.set_unknown(parts_.unknown, parts_.rules->unknown);
    for (const auto id : parts_.rules->unused) silent[id] = true;
    for (const auto id : parts_.rules->symbols) symbol[id] = true;
  }
  double least = parts_.rules ? std::numeric_limits<float>::max() : 0;
  std::vector<std::uint32_t> encoded;
  for (std::uint32_t id = 0; id < parts_.scores.size(); ++id) {
    if (!std::isfinite(parts_.scores[id]))
      core::bad_data("the score of piece {} is not a number", id);
    const bool quiet = silent[id] || pieces_.is_byte(id) || token(id).empty();
    if (!parts_.rules || !(quiet || symbol[id])) least = std::min(least, parts_.scores[id]);
    if (quiet) continue;
    encoded.push_back(id);
    const auto text = token(id);
    const char* const end = text.data() + text.size();
    Char left = decode_char(text.data(), end);
    if (left.bytes == text.size()) known_.insert(left.code_point);
    for (const char* p = text.data() + left.bytes; p < end;) {
      const Char right = decode_char(p, end);
      if (left.code_point == Char::kInvalid || right.code_point == Char::kInvalid)
        core::bad_data("piece {} is not UTF-8", id);
      pairs_.insert(pair_of(left.code_point, right.code_point));
      p += right.bytes;
      left = right;
    }
  }
  unknown_score_ = rounded(least - kUnknown);
  prefixes_ = Prefixes(vocabulary_, std::move(encoded));
}

bool Unigram::joins(std::uint32_t left, std::uint32_t right) const {
  if (pairs_.count(pair_of(left, right)) > 0) return true;
  return !parts_.byte_fallback && !is_known(left) && !is_known(right);
}

double Unigram::rounded(double sum) const {
  return parts_.rules ? static_cast<double>(static_cast<float>(sum)) : sum;
}

double Unigram::added(double sum, std::span<const std::uint32_t> tokens) const {
  for (const auto id : tokens) sum = rounded(sum + parts_.scores[id]);
  return sum;
}

bool Unigram::encode_stretch(std::string_view text, double& sum, std::vector<Step>& steps,
    std::vector<std::uint32_t>& out) const {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  steps.assign(text.size() + 1, {kNever, 0, 0, std::numeric_limits<float>::infinity()});
  steps[0].score = sum;
  const char* const end = text.data() + text.size();
  bool clear = true;
  for (std::size_t at = 0, reached = 0; at < text.size();) {
    if (parts_.rules && std::abs(steps[at].score) > kLargestSum) {
      const double offset = steps[at].score;
      for (std::size_t i = at; i <= std::max(at, reached); ++i)
        steps[i].score = rounded(steps[i].score - offset);
      clear = false;
    }
    const auto bytes = decode_char(text.data() + at, end).bytes;
    const double here = steps[at].score;
    const auto offer = [&](std::size_t to, double score, std::uint32_t id) {
      reached = std::max(reached, to);
      auto& step = steps[to];
      const double whole = rounded(here + score);
      const auto lead = static_cast<float>(std::abs(whole - step.score));
      if (whole > step.score) step = {whole, static_cast<std::uint32_t>(at), id, lead};
      else step.lead = std::min(step.lead, lead);
    };
    bool whole = false;  // the character itself is a piece
    prefixes_.each(text.substr(at), [&](std::size_t size, std::uint32_t id) {
      offer(at + size, parts_.scores[id], id);
      whole = whole || size == bytes;
    });
    if (!whole) offer(at + bytes, unknown_score_, parts_.unknown);
    at += bytes;
  }
  const double first = std::exchange(sum, steps.back().score);
  const auto from = out.size();
  for (auto at = static_cast<std::uint32_t>(text.size()); at > 0; at = steps[at].from) {
    const auto& step = steps[at];
    clear = clear && (!parts_.rules || (step.lead > kClearLead && step.id != parts_.unknown &&
                                           std::abs(step.score - first) < kFineWord));
    if (step.id != parts_.unknown) {
      out.push_back(step.id);
    } else if (parts_.byte_fallback) {
      for (auto i = at; i-- > step.from;) out.push_back(pieces_.byte_token(text[i]));
    } else if (out.size() == from || out.back() != parts_.unknown) {
      out.push_back(parts_.unknown);
    }
  }
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(from), out.end());
  return clear;
}

std::unique_ptr<Encoder> Unigram::encoder() const {
  return std::make_unique<UnigramEncoder>(*this);
}

TokenizerPtr Unigram::parsing_special() const {
  return std::make_shared<Unigram>(vocabulary_, parts_parsing_special(parts_, *this));
}

const char* Unigram::cut(const char* begin, const char* end) const {
  // What is cut off contains the bytes in which the sum counts, also if normalisation shortens it.
  const std::ptrdiff_t least = parts_.rules ? 4 * kSummed : 0;
  if (end - begin <= least) return nullptr;
  const char* const cut =
      parts_.steps.cut(begin, end, [&](std::uint32_t left, std::uint32_t right) {
        return left != Char::kInvalid && right != Char::kInvalid && !joins(left, right);
      });
  return cut == nullptr || cut - begin >= least ? cut : forced_cut(begin, end);
}

void Unigram::decode_token(std::uint32_t id, bool& line_start, std::string& out) const {
  expect_token(id);
  pieces_.decode(id, token(id), line_start, out);
}

std::string Unigram::json() const {
  JsonText pieces;
  pieces.open('[');
  for (std::uint32_t id = 0; id < parts_.scores.size(); ++id) {
    pieces.item().open('[').item().string(token(id));
    pieces.item().raw(core::dump(core::Json(parts_.scores[id]))).close(']');
  }
  pieces.close(']');
  core::Json model = {
      {"byte_fallback", parts_.byte_fallback}, {"type", "Unigram"}, {"unk_id", parts_.unknown}};
  if (parts_.rules) model["sentencepiece"] = rules_json(*parts_.rules);
  return tokenizer_text(*this,
      {{"added_tokens", added_tokens_json(parts_.steps, special_)},
          {"decoder", pieces_.decoder_json()},
          {"normalizer", normalizer_json(parts_.steps.normalizer())},
          {"pre_tokenizer", rules_split_json(parts_.steps, "")}},
      model, {{"vocab", std::move(pieces).text()}});
}

}  // namespace text
