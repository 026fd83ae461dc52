#include "text/documents/text_source.h"

#include <simdjson.h>

#include <filesystem>

#include "core/path_kind.h"
#include "core/units.h"
#include "shard/documents_codec.h"
#include "text/documents/documents.h"
#include "text/python/python_text.h"

namespace text {
namespace {

// Removes white space at both ends: all of Unicode's, and the separators 0x1c to 0x1f.
std::string_view trimmed(std::string_view text) {
  return python::stripped(text, nullptr, true, true);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(from, begin)) != text.npos; begin = at + from.size())
    out.append(text, begin, at - begin).append(to);
  if (begin > 0) text = std::move(out.append(text, begin));
}

// Removes white space after each `open` and before the next `close`.
void close_up(std::string& text, char open, char close) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(open, begin)) != text.npos;) {
    const std::size_t end = text.find(close, at + 1);
    if (end == text.npos) break;
    out.append(text, begin, at + 1 - begin);
    out.append(trimmed(std::string_view(text).substr(at + 1, end - at - 1))).push_back(close);
    begin = end + 1;
  }
  text = std::move(out.append(text, begin));
}

// Replaces "/' 5/". The harness does this by mistake, but its figures include it.
void replace_slashed_digit(std::string& text) {
  for (std::size_t at = 0; (at = text.find("/' ", at)) != text.npos; ++at)
    if (at + 4 < text.size() && text[at + 3] >= '0' && text[at + 3] <= '9' && text[at + 4] == '/')
      text.replace(at, 5, "/'[0-9]/");
}

using Change = std::pair<std::string_view, std::string_view>;

constexpr std::array<Change, 9> kMarks = {{{" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."},
    {" : ", ": "}, {" ; ", "; "}, {" . ", ". "}, {" ! ", "! "}, {" ? ", "? "}, {" , ", ", "}}};
constexpr std::array<Change, 8> kRest = {{{"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},
    {" \u00b0 ", "\u00b0"}, {" \n", "\n"}, {"\n ", "\n"}, {" N ", " 1 "}, {" 's", "'s"}}};

namespace fs = std::filesystem;

constexpr std::size_t kStartBytes = 4096;

// Files that were skipped for one reason.
struct LeftOut {
  std::string_view why;
  std::uint64_t count = 0;
  std::string first = {};
  void add(const std::string& path) {
    if (count++ == 0) first = path;
  }
  void note(std::vector<std::string>& notes) const {
    if (count == 0) return;
    notes.push_back(fmt::format("{}{}: left out: {}", core::printable(first),
        count > 1 ? fmt::format(" and {} more", count - 1) : "", why));
  }
};

// Whether the unpacked file does not begin like a text. As in git, a NUL occurs in no text.
bool begins_as_no_text(const std::string& path) {
  if (shard::is_shard(path)) return true;
  shard::UnpackedSource source(core::open_source(path));
  std::string start(kStartBytes, '\0');
  start.resize(core::read_fully(source, std::as_writable_bytes(std::span(start))));
  return start.find('\0') != start.npos || !core::what_is_no_text(start).empty();
}

class FolderWalk {
 public:
  explicit FolderWalk(FolderTexts& found) : found_(found) {}

  void add(const std::string& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      core::fail(core::Code::no_input, "{}: --recursive takes folders; it {}", folder,
          core::what_path_is(folder));
    std::vector<std::string> names;
    fs::recursive_directory_iterator at(
        folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      const std::string& path = at->path().native();
      if (at->path().filename().native().starts_with('.')) {
        hidden_.add(path);
        at.disable_recursion_pending();
      } else if (at->is_symlink(error)) {
        links_.add(path);
      } else if (at->is_regular_file(error)) {
        names.push_back(at->path().lexically_relative(folder).generic_string());
      } else if (!at->is_directory(error)) {
        special_.add(path);
      }
    }
    if (error) core::fail(core::Code::io, "{}: cannot be read: {}", folder, error.message());
    std::ranges::sort(names);
    for (const auto& name : names) take(folder, name);
  }

  void finish() {
    for (const auto* left : {&hidden_, &links_, &special_, &others_}) left->note(found_.notes);
  }

 private:
  void take(const std::string& folder, const std::string& name) {
    const std::string path = (fs::path(folder) / name).native();
    if (begins_as_no_text(path)) return others_.add(path);
    std::uint64_t replaced = 0;
    std::string clean = core::with_replacements(name, replaced);
    if (clean.find('\n') != clean.npos || clean.size() > shard::kMostNameBytes)
      core::bad_data("{}: is not a valid document name, which is one line of at most {} bytes",
          core::printable(path), shard::kMostNameBytes);
    found_.paths.push_back(path);
    found_.names.push_back(std::move(clean));
  }

  FolderTexts& found_;
  LeftOut hidden_{"hidden; give it by name to read it"}, links_{"a link"},
      special_{"not a regular file"}, others_{"no text"};
};

}  // namespace

bool is_wikitext_title(std::string_view line) {
  if (!trimmed(line).starts_with('=')) return false;
  std::string joined(line);
  replace_all(joined, "= = =", "===");
  replace_all(joined, "= =", "==");
  const std::string_view title = trimmed(joined);
  return title.starts_with("= ") && title.ends_with(" =");
}

std::string wikitext_detokenised(std::string_view page) {
  std::string text(page);
  replace_all(text, "s '", "s'");
  replace_slashed_digit(text);
  for (const auto& [from, to] : kMarks) replace_all(text, from, to);
  for (const std::string_view pair : {"()", "[]", "{}", "\"\"", "''"})
    close_up(text, pair[0], pair[1]);
  for (const auto& [from, to] : kRest) replace_all(text, from, to);
  return text;
}

std::uint64_t wikitext_words(std::string_view page) {
  std::uint64_t words = 1;
  bool after_space = false;
  python::each_character(page, [&](std::string_view, std::uint32_t code_point) {
    const bool space = python::is_space(code_point);
    words += space && !after_space ? 1 : 0;
    after_space = space;
  });
  return words;
}

void TextFindings::Finding::add(const std::string& name, std::uint64_t n) {
  if (n == 0) return;
  if (count == 0) file = name;
  count += n;
  ++files;
}

void TextFindings::add(const std::string& name, const TextFindings& file) {
  using All = TextFindings;
  if (no_text.count == 0) what_is_no_text = file.what_is_no_text;
  for (const auto finding :
      {&All::crlf, &All::nul, &All::replaced, &All::json, &All::no_row, &All::no_text})
    (this->*finding).add(name, (file.*finding).count);
}

std::vector<std::string> TextFindings::notes(const TextRules& rules) const {
  std::vector<std::string> lines;
  const auto note = [&](const Finding& finding, std::string_view what) {
    if (finding.count == 0) return;
    const std::string others =
        finding.files > 1 ? " and " + core::counted(finding.files - 1, "more file") : "";
    lines.push_back(fmt::format("{}{}: {}", finding.file, others, what));
  };
  note(json,
      "begins like JSON, but is read as text; for JSON lines give --format jsonl (convert an "
      "array with jq -c '.[]')");
  if (!rules.drop_cr)
    note(crlf, fmt::format("{} with CRLF at the end, whose CR is encoded; --newlines lf removes it",
                   core::counted(crlf.count, "line")));
  note(no_text, fmt::format("{}; its bytes are encoded unchanged", what_is_no_text));
  note(no_row, fmt::format("left out {} without a text", core::counted(no_row.count, "row")));
  note(nul, core::counted(nul.count, "NUL byte") + "; is it a text?");
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

FolderTexts texts_below(const std::vector<std::string>& folders) {
  FolderTexts found;
  FolderWalk walk(found);
  for (const auto& folder : folders) walk.add(folder);
  walk.finish();
  if (found.paths.empty())
    core::bad_data("{}: has no text{}{}", fmt::join(folders, ", "), found.notes.empty() ? "" : "; ",
        fmt::join(found.notes, "; "));
  return found;
}

}  // namespace text
