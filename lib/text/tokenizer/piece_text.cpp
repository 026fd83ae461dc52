#include "text/tokenizer/piece_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace text {

PieceText::PieceText(const Tokenizer& tokenizer, bool byte_fallback, const Normalizer& normalizer,
                     std::string space, bool prefixed)
    : byte_of_(tokenizer.size(), -1), space_(std::move(space)), prefixed_(prefixed) {
  for (std::uint32_t b = 0; byte_fallback && b < 256; ++b) {
    const auto id = tokenizer.id_of(fmt::format("<0x{:02X}>", b));
    if (!id)
      core::fail(core::Code::bad_data,
                 "byte_fallback without a token <0x{:02X}>: it is supported with all 256", b);
    bytes_[b] = *id;
    byte_of_[*id] = static_cast<std::int16_t>(b);
  }
  for (const NormalStep& step : normalizer.steps())
    if (step.what == NormalStep::What::replace && step.from == " ") space_ = step.to;
  for (const NormalStep& step : normalizer.steps())
    prefixed_ |= step.what == NormalStep::What::prepend && (step.to == space_ || step.to == " ");
}

void PieceText::decode(std::uint32_t id, std::string_view token, bool& line_start,
                       std::string& out) const {
  const std::size_t from = out.size();
  if (byte_of_[id] >= 0) {
    out += static_cast<char>(byte_of_[id]);
  } else if (space_.empty()) {
    out += token;
  } else {
    for (std::size_t at = 0; at < token.size();) {
      const std::size_t mark = std::min(token.find(space_, at), token.size());
      out.append(token, at, mark - at);
      if (mark < token.size()) out += ' ';
      at = mark + space_.size();
    }
  }
  if (out.size() == from) return;
  if (line_start && prefixed_ && out[from] == ' ') out.erase(from, 1);
  line_start = false;
}

void PieceText::append_decoder(JsonText& json) const {
  json.key("decoder").open('{').key("decoders").open('[');
  if (!space_.empty()) {
    json.item().open('{').key("content").string(" ").key("pattern").open('{');
    json.key("String").string(space_).close('}').key("type").string("Replace").close('}');
  }
  json.item().raw(R"({"type":"ByteFallback"})").item().raw(R"({"type":"Fuse"})");
  if (prefixed_) json.item().raw(R"({"content":" ","start":1,"stop":0,"type":"Strip"})");
  json.close(']').key("type").string("Sequence").close('}');
}

}  // namespace text
