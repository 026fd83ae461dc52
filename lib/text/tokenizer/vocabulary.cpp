#include "text/tokenizer/vocabulary.h"

#include <bit>
#include <span>

#include "core/error.h"
#include "core/hash.h"

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
  if (pool_.size() + token.size() >= kGap)
    core::fail(core::Code::bad_data, "a vocabulary of more than 4 GiB");
  if (id >= tokens_.size()) tokens_.resize(id + std::size_t{1});
  tokens_[id] = {static_cast<std::uint32_t>(pool_.size()),
                 static_cast<std::uint32_t>(token.size())};
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

}  // namespace text
