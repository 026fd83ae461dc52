#include "text/documents/text_source.h"

#include <simdjson.h>

#include "core/plain_text.h"
#include "text/documents/documents.h"

namespace text {

void TextFindings::Finding::add(const std::string& name, std::uint64_t n) {
  if (n == 0) return;
  if (count == 0) file = name;
  count += n;
  ++files;
}

void TextFindings::add(const std::string& name, const TextFindings& file) {
  crlf.add(name, file.crlf.count);
  nul.add(name, file.nul.count);
  replaced.add(name, file.replaced.count);
  json.add(name, file.json.count);
  no_row.add(name, file.no_row.count);
  if (no_text.count == 0) what_is_no_text = file.what_is_no_text;
  no_text.add(name, file.no_text.count);
}

std::vector<std::string> TextFindings::notes(const TextRules& rules) const {
  std::vector<std::string> lines;
  const auto note = [&](const Finding& finding, std::string_view what) {
    if (finding.count == 0) return;
    const std::string others =
        finding.files > 1 ? fmt::format(" and {} more files", finding.files - 1) : "";
    lines.push_back(fmt::format("{}{}: {}", finding.file, others, what));
  };
  note(json,
      "begins like JSON, but is read as text; for JSON lines give --format jsonl (convert an "
      "array with jq -c '.[]')");
  if (!rules.drop_cr)
    note(crlf, fmt::format("{} lines end in CRLF, and the CR is encoded; --newlines lf removes it",
                   crlf.count));
  note(no_text, fmt::format("{}; its bytes are encoded unchanged", what_is_no_text));
  note(no_row, fmt::format("left out {} rows without a text", no_row.count));
  note(nul, fmt::format("{} NUL bytes; is it a text?", nul.count));
  return lines;
}

TextSource::TextSource(
    const std::string& path, const TextRules& rules, Start start, const std::string& name)
    : source_(core::open_source(path, name), rules.unpack_memory), rules_(rules),
      start_(std::move(start)) {}

bool TextSource::append(std::string& text, std::size_t& size, std::size_t n) {
  const std::size_t from = size, room = from + held_.size() + n + Batch::kPadding;
  if (text.size() < room) text.resize(room);
  std::memcpy(text.data() + size, held_.data(), held_.size());
  size += held_.size();
  held_.clear();
  const auto fresh = std::as_writable_bytes(std::span(text.data() + size, n));
  const std::size_t got = core::read_fully(source_, fresh);
  hasher_.update(fresh.first(got));
  size += got;
  const bool at_end = got < n;
  if (!begun_) begin(text, from, size);
  if (!json_) {
    const std::string_view all(text.data() + from, size - from);
    std::size_t wait = 0;
    if (!at_end && rules_.invalid <= Invalid::replace) wait = core::unfinished_bytes(all);
    if (!at_end && rules_.drop_cr && all.ends_with('\r')) wait = 1;
    held_ = all.substr(all.size() - wait);
    size -= wait;
    check(text, from, size);
  }
  return at_end;
}

void TextSource::begin(std::string& text, std::size_t from, std::size_t& size) {
  begun_ = true;
  std::string_view all(text.data() + from, size - from);
  if (rules_.invalid != Invalid::keep && all.starts_with(core::kByteOrderMark)) {
    place_ = core::kByteOrderMark.size();
    text.erase(from, place_);
    size -= place_;
    text.resize(text.size() + place_);  // padding
    all = {text.data() + from, size - from};
  }
  json_ = start_(all);
  const auto what = core::what_is_no_text(all);
  if (what.empty() || rules_.invalid == Invalid::keep) return;
  if (rules_.invalid != Invalid::pass) core::bad_data("{}: byte {}: {}", name(), place_, what);
  findings_.no_text.count = 1;
  findings_.what_is_no_text = what;
}

// Returns with whole characters in text[from, size), if the file is text.
void TextSource::check(std::string& text, std::size_t from, std::size_t& size) {
  const std::string_view all(text.data() + from, size - from);
  count_lines(all);
  const std::size_t bytes = all.size();
  if (rules_.invalid <= Invalid::replace) {
    std::uint64_t nul = 0;
    for (std::size_t at = 0; (at = all.find('\0', at)) != all.npos; ++at) ++nul;
    findings_.nul.count += nul;
    if (!simdjson::validate_utf8(all.data(), all.size())) {
      if (rules_.invalid == Invalid::error)
        core::bad_data("{}: {}; --invalid replace writes U+FFFD for it", name(),
            core::what_is_not_utf8(all, core::utf8_length(all), place_));
      std::uint64_t replaced = 0;
      const std::string mended = core::with_replacements(all, replaced);
      findings_.replaced.count += replaced;
      size = from + mended.size();
      text.resize(std::max(text.size(), size + Batch::kPadding));
      std::memcpy(text.data() + from, mended.data(), mended.size());
    }
  }
  place_ += bytes;
  if (rules_.drop_cr) drop_cr(text, from, size);
}

void TextSource::count_lines(std::string_view text) {
  if (text.empty()) return;
  std::uint64_t lines = after_cr_ && text[0] == '\n' ? 1 : 0;
  for (std::size_t at = 0; (at = text.find('\r', at)) != text.npos; ++at)
    if (at + 1 < text.size() && text[at + 1] == '\n') ++lines;
  after_cr_ = text.ends_with('\r');
  findings_.crlf.count += lines;
}

void drop_cr(std::string& text, std::size_t from, std::size_t& size) {
  std::size_t to = from;
  for (std::size_t at = from; at < size; ++at)
    if (text[at] != '\r' || at + 1 == size || text[at + 1] != '\n') text[to++] = text[at];
  size = to;
}

}  // namespace text
