#include "text/tokenizer/piece_text.h"

#include <charconv>

namespace text {

PieceText::PieceText(const Tokenizer& tokenizer, bool byte_fallback, const Normalizer& normalizer,
    std::optional<PieceDecoder> decoder, std::string space, bool prefixed)
    : byte_of_(tokenizer.size(), -1), space_(std::move(space)) {
  decodes_bytes_ = decoder ? decoder->bytes : byte_fallback;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const auto name = fmt::format("<0x{:02X}>", b);
    const auto id = tokenizer.id_of(name);
    if (byte_fallback && !tokenizer.model_id_of(name))
      core::bad_data("byte_fallback without a token <0x{:02X}>: it is supported with all 256", b);
    if (id) bytes_[b] = *id;
  }
  // Decoders read names in small letters too.
  for (std::uint32_t id = 0, byte = 0; id < tokenizer.size(); ++id) {
    const auto name = tokenizer.token(id);
    if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>' ||
        std::from_chars(&name[3], &name[5], byte, 16).ptr != &name[5])
      continue;
    names_bytes_ = names_bytes_ || !decodes_bytes_;
    if (byte_fallback || decodes_bytes_) byte_of_[id] = static_cast<std::int16_t>(byte);
  }
  for (const NormalStep& step : normalizer.steps())
    if (step.what == NormalStep::What::replace && step.from == " ") space_ = step.to;
  for (const NormalStep& step : normalizer.steps())
    prefixed |= step.what == NormalStep::What::prepend && (step.to == space_ || step.to == " ");
  if (decoder) {
    decoder_ = *std::move(decoder);
  } else {
    if (!space_.empty()) decoder_.replaced.emplace_back(space_, " ");
    decoder_.strips_space = prefixed;
  }
  trims_ = normalizer.is_one_pass() && normalizer.counts_spaces();
}

void PieceText::set_unknown(std::uint32_t id, std::string text) {
  unknown_ = id;
  unknown_text_ = std::move(text);
}

void PieceText::decode(
    std::uint32_t id, std::string_view token, bool& line_start, std::string& out) const {
  const std::size_t from = out.size();
  const bool strips = line_start && (decoder_.strips_space || trims_) && id != unknown_;
  if (id == unknown_) {
    out += unknown_text_;
  } else if (decodes_bytes_ && byte_of_[id] >= 0) {
    out += static_cast<char>(byte_of_[id]);
  } else {
    out += token;
    for (const auto& [old, now] : decoder_.replaced) {
      const std::string text = out.substr(from);
      out.resize(from);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t found = std::min(text.find(old, at), text.size());
        out.append(text, at, found - at);
        if (found < text.size()) out += now;
        at = found + old.size();
        if (out.size() - from > 64 * token.size())
          core::bad_data("the decoder makes token {} more than 64 times as long", id);
      }
    }
  }
  if (out.size() == from) return;
  if (strips && out[from] == ' ') out.erase(from, 1);
  line_start = trims_ && out.size() == from;
}

core::Json rules_json(const PieceRules& rules) {
  return {{"symbols", rules.symbols}, {"tied", rules.tied}, {"unknown", rules.unknown},
      {"unused", rules.unused}};
}

std::vector<AddedToken> symbols_of(const PieceRules& rules, const Vocabulary& vocabulary) {
  return core::mapped(rules.symbols, [&](std::uint32_t id) {
    return AddedToken{.id = id, .content = std::string(vocabulary.token(id))};
  });
}

std::string pattern_of(const std::vector<AddedToken>& symbols) {
  std::vector<std::string_view> texts;
  for (const auto& symbol : symbols)
    if (symbol.content.find(' ') == std::string::npos) texts.push_back(symbol.content);
  std::ranges::sort(
      texts, [](auto a, auto b) { return a.size() != b.size() ? a.size() > b.size() : a < b; });
  std::string pattern;
  for (const auto text : texts) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text) {
      if (std::string_view(R"(\.[]{}()*+?^$|)").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern;
}

core::Json PieceText::decoder_json() const {
  auto steps = core::Json::array();
  for (const auto& [old, now] : decoder_.replaced)
    steps.push_back({{"content", now}, {"pattern", {{"String", old}}}, {"type", "Replace"}});
  if (!names_bytes_) steps.push_back(core::Json{{"type", "ByteFallback"}});
  steps.push_back(core::Json{{"type", "Fuse"}});
  if (decoder_.strips_space)
    steps.push_back({{"content", " "}, {"start", 1}, {"stop", 0}, {"type", "Strip"}});
  return {{"decoders", std::move(steps)}, {"type", "Sequence"}};
}

}  // namespace text
