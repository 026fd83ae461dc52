#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace text {

std::string_view name_of(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::bytes:
      return "bytes";
    case TokenizerKind::bpe:
      return "bpe";
    case TokenizerKind::word:
      return "word";
    case TokenizerKind::units:
      return "units";
    case TokenizerKind::pieces:
      return "pieces";
    case TokenizerKind::unigram:
      return "unigram";
  }
  return "";
}

void Tokenizer::take(Vocabulary vocabulary, const std::vector<Merge>& merges,
                     std::vector<SpecialToken> special) {
  for (const Merge& merge : merges)
    for (const std::uint32_t id : {merge.left, merge.right, merge.result})
      if (!vocabulary.has(id))
        core::fail(core::Code::bad_data, "a merge with id {}, which is not a token", id);
  for (const auto& token : special)
    if (vocabulary.token(token.id) != token.content)
      core::fail(core::Code::bad_data, "special token {} is not in the vocabulary", token.content);
  vocabulary_ = std::move(vocabulary);
  special_ = std::move(special);
  std::sort(special_.begin(), special_.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
}

void Tokenizer::expect_token(std::uint32_t id) const {
  if (!vocabulary_.has(id))
    core::fail(core::Code::bad_data, "id {} is not in a vocabulary of {}", id, size());
}

std::string Tokenizer::summary() const {
  return fmt::format("{} tokenizer of {} tokens", name_of(kind()), size());
}

std::optional<std::uint32_t> Tokenizer::end_of_document() const {
  for (const char* name : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"})
    for (const auto& token : special_)
      if (token.content == name) return token.id;
  return std::nullopt;
}

void Tokenizer::encode(std::string_view text, std::vector<std::uint32_t>& out) const {
  encoder()->encode(text, out);
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::uint32_t> ids;
  encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool line_start) const {
  std::string out;
  for (const std::uint32_t id : ids) decode_token(id, line_start, out);
  return out;
}

StreamEncoder::StreamEncoder(TokenizerPtr tokenizer)
    : tokenizer_(std::move(tokenizer)), encoder_(tokenizer_->encoder()) {}

void StreamEncoder::feed(std::string_view piece, std::vector<std::uint32_t>& out) {
  rest_ += piece;
  if (rest_.size() < try_at_) return;
  const char* begin = rest_.data();
  const char* end = begin + rest_.size();
  const char* start = begin;
  while (const char* cut = start < end ? tokenizer_->cut(start, end) : nullptr) {
    encoder_->encode({start, static_cast<std::size_t>(cut - start)}, out, continued_);
    continued_ = true;
    start = cut;
  }
  rest_.erase(0, static_cast<std::size_t>(start - begin));
  // Wait for twice the length before the next try; total time is then linear for pieces of any
  // size.
  try_at_ = rest_.size() * 2;
}

void StreamEncoder::finish(std::vector<std::uint32_t>& out) {
  encoder_->encode(rest_, out, continued_);
  continued_ = false;
  rest_.clear();
  try_at_ = 0;
}

}  // namespace text
