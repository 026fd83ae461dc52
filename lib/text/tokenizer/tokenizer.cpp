#include "text/tokenizer/tokenizer.h"

#include "core/units.h"

namespace text {

std::string_view Vocabulary::token(std::uint32_t id) const {
  if (!has(id)) return {};
  return std::string_view(pool_).substr(tokens_[id].offset, tokens_[id].bytes);
}

std::size_t Vocabulary::find_slot(std::string_view token) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = core::hash64(std::as_bytes(std::span(token.data(), token.size()))) & mask;
  while (slots_[at] != kGap && this->token(slots_[at]) != token) at = (at + 1) & mask;
  return at;
}

std::optional<std::uint32_t> Vocabulary::id_of(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t id = slots_[find_slot(token)];
  return id == kGap ? std::nullopt : std::optional(id);
}

std::optional<std::uint32_t> Vocabulary::id_of_any(std::string_view token) const {
  auto id = id_of(token);
  for (std::uint32_t i = 0; !id && i < nameless_.size(); ++i)
    if (nameless_[i] && this->token(i) == token) id = i;
  return id;
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  tokens_.reserve(tokens);
  pool_.reserve(bytes);
  const std::size_t wanted = std::bit_ceil(tokens * 2 + 16);
  if (wanted <= slots_.size()) return;
  slots_.assign(wanted, kGap);
  for (std::uint32_t id = 0; id < tokens_.size(); ++id)
    if (has(id) && !is_nameless(id)) slots_[find_slot(token(id))] = id;
}

void Vocabulary::grow() {
  if ((count_ + 1) * 2 > slots_.size()) reserve(std::max<std::size_t>(count_ * 2, 16), 0);
}

void Vocabulary::put(std::uint32_t id, std::string_view token) {
  if (pool_.size() + token.size() >= kGap) core::bad_data("a vocabulary of more than 4 GiB");
  if (id >= tokens_.size()) tokens_.resize(id + std::size_t{1});
  tokens_[id] = {
      static_cast<std::uint32_t>(pool_.size()), static_cast<std::uint32_t>(token.size())};
  pool_ += token;
}

bool Vocabulary::set(std::uint32_t id, std::string_view token) {
  if (has(id)) return false;
  grow();
  const std::size_t slot = find_slot(token);
  if (slots_[slot] != kGap) return false;
  put(id, token);
  slots_[slot] = id;
  ++count_;
  return true;
}

bool Vocabulary::set_nameless(std::uint32_t id, std::string_view token) {
  if (has(id)) return false;
  put(id, token);
  nameless_.resize(std::max<std::size_t>(nameless_.size(), id + std::size_t{1}));
  nameless_[id] = true;
  return true;
}

std::uint32_t Vocabulary::add(std::string_view token) {
  if (const auto known = id_of(token)) return *known;
  const auto id = static_cast<std::uint32_t>(size());
  set(id, token);
  return id;
}

std::string_view name_of(TokenizerKind kind) {
  constexpr std::string_view kNames[] = {
      "bytes", "bpe", "longest", "word", "units", "pieces", "unigram"};
  return kNames[static_cast<std::size_t>(kind)];
}

void Tokenizer::take(
    Vocabulary vocabulary, const std::vector<Merge>& merges, std::vector<SpecialToken> special) {
  for (const Merge& merge : merges)
    for (const std::uint32_t id : {merge.left, merge.right, merge.result})
      if (!vocabulary.has(id)) core::bad_data("a merge with id {}, which is not a token", id);
  for (const auto& token : special)
    if (vocabulary.token(token.id) != token.content)
      core::bad_data("special token {} is not in the vocabulary", token.content);
  vocabulary_ = std::move(vocabulary);
  special_ = std::move(special);
  std::ranges::sort(special_, {}, &SpecialToken::id);
}

void Tokenizer::expect_token(std::uint32_t id) const {
  if (!vocabulary_.has(id)) core::bad_data("id {} is not in a vocabulary of {}", id, size());
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

std::shared_ptr<const Tokenizer> Tokenizer::parsing_special() const {
  core::fail(core::Code::unavailable, "--special: not supported by a {} tokenizer; leave it out",
      name_of(kind()));
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

std::vector<std::uint32_t> TextOrIds::encode(const std::string& text, bool ids) const {
  if (!ids && tokenizer_ == nullptr)
    core::bad_usage("{} has no tokenizer; give token ids with --ids", name_);
  const auto tokens = ids ? core::read_ids(text) : std::optional(tokenizer_->encode(text));
  if (!tokens) core::bad_usage("--ids: takes token ids separated by spaces, not '{}'", text);
  if (tokens->empty()) core::bad_usage("TEXT: takes at least one token");
  return *tokens;
}

std::string TextOrIds::decode(std::span<const std::uint32_t> tokens) const {
  if (tokenizer_ == nullptr) return fmt::format("{}", fmt::join(tokens, " "));
  StreamDecoder decoder(tokenizer_);
  std::string text;
  for (const std::uint32_t token : tokens)
    if (token < tokenizer_->size()) decoder.push(token, text);
  return text;
}

}  // namespace text
