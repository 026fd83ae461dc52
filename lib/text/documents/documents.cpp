#include "text/documents/documents.h"

#include <simdjson.h>

#include <filesystem>

#include "core/json_line.h"
#include "core/units.h"
#include "text/documents/parquet_reader.h"
#include "text/python/python_text.h"

namespace text {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxLine = std::size_t{1} << 30;

bool is_ascii_space(char c) { return c == ' ' || (c >= 9 && c <= 13); }

constexpr const char* kArray = "an array is not JSON lines; convert it: jq -c '.[]'";

// Returns the available part of the first line that is not blank, trimmed.
std::string_view first_line(std::string_view text) {
  while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && is_ascii_space(text.back())) text.remove_suffix(1);
  return text;
}

// Returns true for a JSON line: an object whose member `field` is a text.
bool is_json_document(std::string_view line, const std::string& field) {
  if (!line.starts_with('{') || !line.ends_with('}')) return false;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view value;
  return parser.parse(simdjson::padded_string(core::mend_json(line).text)).get(root) ==
             simdjson::SUCCESS &&
         root[field].get(value) == simdjson::SUCCESS;
}

// Returns true for a list of objects, or an object that has a member.
bool begins_as_json(std::string_view text) {
  const auto next = [&] {
    const auto at = std::ranges::find_if_not(text, is_ascii_space);
    const char c = at == text.end() ? '\0' : *at;
    text.remove_prefix(std::min(static_cast<std::size_t>(at - text.begin()) + 1, text.size()));
    return c;
  };
  const char first = next();
  return (first == '[' && next() == '{') || (first == '{' && next() == '"');
}

class FileReader : public DocumentReader {
 public:
  FileReader(const std::vector<std::string>& paths, DocumentOptions options, CutFunction cut)
      : paths_(core::input_paths(paths)), options_(std::move(options)), cut_(std::move(cut)) {
    separator_ = options_.format == Format::text ? options_.separator : "\n";
  }

  bool next(Batch& batch) override {
    while (source_ || at_ < paths_.size()) {
      if (!source_) open();
      fill(batch);
      if (!batch.parts.empty()) return true;
    }
    return false;
  }

  std::vector<core::Digest> fingerprints() const override { return digests_; }
  Format format() const override { return options_.format; }
  const TextFindings& findings() const override { return findings_; }

 private:
  void open() {
    source_ = std::make_unique<TextSource>(
        paths_[at_], options_.rules, [this](std::string_view start) { return begin(start); },
        options_.name);
    ++at_;
    rest_.clear();
    line_ = 0;
    open_ = false;
    last_ = ' ';
  }

  // Returns true if the file begins as JSON.
  bool begin(std::string_view start) {
    if (options_.by_content && options_.format == Format::text && begins_as_json(start)) {
      const bool unnamed = paths_.size() == 1 && (paths_[0] == "-" || !options_.name.empty());
      if (unnamed && is_json_document(first_line(start), options_.field)) {
        options_.format = Format::jsonl;
        separator_ = "\n";
      } else {
        begins_as_json_ = true;
      }
    }
    return options_.format == Format::jsonl;
  }

  // Reads one batch of the current file, possibly without parts; closes the file at its end.
  void fill(Batch& batch) {
    batch.parts.clear();
    batch.detokenise = options_.detokenise;
    batch.source = source_->name();
    batch.name = options_.names.empty() ? std::string() : options_.names[at_ - 1];
    batch.bytes.assign(rest_);
    std::size_t size = batch.bytes.size();
    const std::size_t scanned = size - unfinished(batch.bytes);
    const bool at_end = source_->append(batch.bytes, size, std::max(kBatchBytes, size));
    batch.format = options_.format;
    batch.source_bytes = finished_bytes_ + source_->bytes();
    const std::size_t done = split(batch, size, scanned, at_end);
    position_ += done;
    rest_.assign(batch.bytes, done, size - done);
    if (rest_.size() > kMaxLine)
      core::bad_data("{}:{}: a {} of more than {} bytes", source_->name(), line_ + 1,
          options_.format == Format::wikitext ? "page" : "line", kMaxLine);
    if (!at_end) return;
    digests_.push_back(source_->digest());
    TextFindings findings = source_->findings();
    findings.json.count = std::exchange(begins_as_json_, false) ? 1 : 0;
    findings_.add(source_->name(), findings);
    finished_bytes_ += source_->bytes();
    source_.reset();
  }

  // Returns how many bytes at the end of `text`, which has no separator, may begin one.
  std::size_t unfinished(std::string_view text) const {
    if (options_.format == Format::wikitext)
      return text.size() - std::min(text.size(), text.rfind('\n'));
    return std::min(text.size(), std::max<std::size_t>(separator_.size(), 1) - 1);
  }

  // Makes parts of bytes[0, size). There is no separator before `from`. Returns where the rest
  // starts.
  std::size_t split(Batch& batch, std::size_t size, std::size_t from, bool at_end) {
    const std::string_view all(batch.bytes.data(), size);
    std::size_t begin = 0;
    if (!separator_.empty()) {
      for (std::size_t at; (at = find_separator(all, from, at_end)) != all.npos;) {
        add(batch, begin, at, true);
        begin = from = at + separator_.size();
      }
    }
    if (at_end) {
      if (begin < size || open_) add(batch, begin, size, true);
      return size;
    }
    if (options_.format == Format::jsonl || options_.format == Format::wikitext) return begin;
    // The last bytes may begin a separator; keep them for the next batch.
    const std::size_t limit = size - std::min(size, separator_.empty() ? 0 : separator_.size() - 1);
    if (limit <= begin) return begin;
    const char* cut = cut_(all.data() + begin, all.data() + limit);
    if (cut == nullptr) return begin;
    const auto end = static_cast<std::size_t>(cut - all.data());
    add(batch, begin, end, false);
    return end;
  }

  // WikiText: the newline before a title.
  std::size_t find_separator(std::string_view all, std::size_t from, bool at_end) const {
    if (options_.format != Format::wikitext) return python::find_text(all, separator_, from);
    std::size_t at = all.find('\n', from);
    while (at != all.npos) {
      const std::size_t end = all.find('\n', at + 1);
      if (end == all.npos && !at_end) return end;
      if (is_wikitext_title(all.substr(at + 1, end - at - 1))) return at;
      at = end;
    }
    return at;
  }

  void add(Batch& batch, std::size_t begin, std::size_t end, bool closes) {
    if (options_.format == Format::jsonl) ++line_;
    if (options_.format == Format::jsonl || options_.format == Format::wikitext) {
      const auto* line = batch.bytes.data();
      if (std::all_of(line + begin, line + end, is_ascii_space)) return;
    }
    if (!open_) taken_ = options_.range.has(position_ + begin);
    if (taken_)
      batch.parts.push_back({begin, end, closes, open_, open_ && !is_ascii_space(last_), line_});
    if (end > begin) last_ = batch.bytes[end - 1];
    open_ = !closes;
  }

  std::vector<std::string> paths_;
  DocumentOptions options_;
  CutFunction cut_;
  std::string separator_;
  std::size_t at_ = 0;
  std::unique_ptr<TextSource> source_;
  std::string rest_;
  std::uint64_t line_ = 0, finished_bytes_ = 0;
  std::uint64_t position_ = 0;  // offset of a batch's first byte in all files
  bool open_ = false;           // the document of the last part has not ended
  bool taken_ = true;           // the document begins in the range
  char last_ = ' ';             // last byte of the previous part
  std::vector<core::Digest> digests_;
  bool begins_as_json_ = false;  // the file, which is read as text, begins as JSON
  TextFindings findings_;
};

// Reads the lines of one file, each whole.
class LineSource {
 public:
  LineSource(const std::string& path, const TextRules& rules)
      : source_(path, rules, [](std::string_view) { return false; }) {}
  bool next(std::string_view& line) {
    for (;;) {
      const void* found = ::memchr(bytes_.data() + at_, '\n', size_ - at_);
      if (found || (ended_ && at_ < size_)) {
        const auto end =
            found ? static_cast<std::size_t>(static_cast<const char*>(found) - bytes_.data())
                  : size_;
        line = {bytes_.data() + at_, end - at_};
        begin_ = position_ + at_;
        at_ = found ? end + 1 : size_;
        ++number_;
        return true;
      }
      if (ended_) return false;
      bytes_.erase(0, at_);
      position_ += at_;
      size_ -= at_;
      at_ = 0;
      if (size_ > kMaxLine)
        core::bad_data("{}:{}: a line of more than {} bytes", name(), number_ + 1, kMaxLine);
      ended_ = source_.append(bytes_, size_, std::max(kBatchBytes, size_));
    }
  }
  const std::string& name() const { return source_.name(); }
  std::uint64_t number() const { return number_; }
  /// Returns the offset of the line in the file.
  std::uint64_t first_byte() const { return begin_; }
  std::uint64_t bytes_read() const { return source_.bytes(); }
  core::Digest digest() const { return source_.digest(); }
  const TextFindings& findings() const { return source_.findings(); }

 private:
  TextSource source_;
  std::string bytes_;
  std::size_t size_ = 0, at_ = 0;
  std::uint64_t number_ = 0, begin_ = 0;
  std::uint64_t position_ = 0;  // offset of bytes_[0]
  bool ended_ = false;
};

class PairReader : public DocumentReader {
 public:
  PairReader(const std::string& source, const std::string& target, const ByteRange& range,
      const TextRules& rules)
      : source_(source, rules), target_(target, rules), range_(range) {}

  bool next(Batch& batch) override {
    batch.parts.clear();
    batch.bytes.clear();
    batch.source = source_.name();
    batch.format = Format::lines;
    std::string_view a, b;
    while (batch.bytes.size() < kBatchBytes) {
      const bool more_a = source_.next(a), more_b = target_.next(b);
      if (more_a != more_b) {
        const LineSource& longer = more_a ? source_ : target_;
        const LineSource& shorter = more_a ? target_ : source_;
        core::bad_data(
            "{}:{}: has no counterpart in {}, which has {} lines; both files need the same number "
            "of lines",
            longer.name(), longer.number(), shorter.name(), shorter.number());
      }
      if (!more_a) break;
      if (!range_.has(source_.first_byte())) continue;
      for (const std::string_view line : {a, b}) {
        const std::size_t begin = batch.bytes.size();
        batch.bytes += line;
        batch.parts.push_back({begin, batch.bytes.size(), true, false, false, 0});
      }
    }
    batch.bytes.append(Batch::kPadding, '\0');
    batch.source_bytes = source_.bytes_read() + target_.bytes_read();
    if (!batch.parts.empty()) return true;
    for (const LineSource* file : {&source_, &target_})
      findings_.add(file->name(), file->findings());
    return false;
  }

  std::vector<core::Digest> fingerprints() const override {
    return {source_.digest(), target_.digest()};
  }
  Format format() const override { return Format::lines; }
  const TextFindings& findings() const override { return findings_; }

 private:
  LineSource source_, target_;
  ByteRange range_;
  TextFindings findings_;
};

// Decides by the name, without a compression suffix, and checks the first byte.
bool is_json_lines(const std::string& path) {
  if (!core::is_named_json_lines(path) || !core::is_regular_file(path)) return false;
  shard::UnpackedSource source(core::open_source(path));
  std::string bytes(4096, '\0');
  bytes.resize(core::read_fully(source, std::as_writable_bytes(std::span(bytes))));
  core::expect_text(bytes, path);
  const std::string_view start = core::without_byte_order_mark(bytes);
  const auto first = std::ranges::find_if_not(start, is_ascii_space);
  if (first == start.end() || *first == '{') return true;
  if (*first == '[')
    core::bad_data(
        "{}: contains a JSON array, not JSON lines; convert it: jq -c '.[]' {}", path, path);
  core::bad_data(
      "{}: is named like JSON lines, but does not begin with {{; to read it as text, give "
      "--format text",
      path);
}

// Returns true for all, false for none, and throws otherwise.
bool all_are(
    const std::vector<std::string>& paths, bool (*is)(const std::string&), const char* what) {
  const std::string* some = nullptr;
  const std::string* other = nullptr;
  for (const auto& path : paths) (is(path) ? some : other) = &path;
  if (some != nullptr && other != nullptr)
    core::bad_usage("{}: {}, but {} is not; give --format for both, or encode them separately",
        *some, what, *other);
  return some != nullptr;
}

}  // namespace

Format format_of(std::string_view name) {
  if (name == "text" || name == "auto") return Format::text;
  if (name == "jsonl") return Format::jsonl;
  if (name == "lines") return Format::lines;
  if (name == "wikitext") return Format::wikitext;
  if (name == "parquet") return Format::parquet;
  core::bad_usage("format {} is not supported; text, jsonl, lines, wikitext and parquet are", name);
}

bool are_json_lines(const std::vector<std::string>& paths) {
  return all_are(paths, is_json_lines, "JSON lines");
}

bool are_parquet(const std::vector<std::string>& paths) {
  return all_are(paths, is_parquet, "a Parquet file");
}

ByteRange range_of(const core::Part& part, const std::vector<std::string>& paths) {
  const auto inputs = core::input_paths(paths);
  for (const auto& path : inputs)
    if (path == "-" || (core::exists(path) && !core::is_regular_file(path)) ||
        shard::UnpackedSource(core::open_source(path)).packed())
      core::bad_usage(
          "--part: {} is compressed or not a regular file, and cannot be divided; decompress it "
          "first",
          path == "-" ? "stdin" : path);
  const auto bytes = static_cast<std::int64_t>(total_bytes(inputs));
  // With U+FFFD replacements a text is longer than its files.
  const bool last = part.index + 1 == part.count;
  return {static_cast<std::uint64_t>(part.begin(bytes)),
      last ? UINT64_MAX : static_cast<std::uint64_t>(part.end(bytes))};
}

std::unique_ptr<DocumentReader> read_documents(
    const std::vector<std::string>& paths, DocumentOptions options, CutFunction cut) {
  if (options.format == Format::parquet) return read_parquet(paths, std::move(options));
  return std::make_unique<FileReader>(paths, std::move(options), std::move(cut));
}

std::unique_ptr<DocumentReader> read_pairs(const std::string& source, const std::string& target,
    const ByteRange& range, const TextRules& rules) {
  core::input_paths({source, target});  // stdin is one of them
  return std::make_unique<PairReader>(source, target, range, rules);
}

void LineFlaws::add(const LineFlaws& later) {
  if (first.empty()) first = later.first;
  skipped += later.skipped;
  mended += later.mended;
}

struct PartTexts::Impl {
  std::string field;
  BadLines bad;
  simdjson::dom::parser parser;
  bool mended = false;  // the last line was mended

  // Returns why a line has no text, or an empty string. `value` receives the text, which is valid
  // until the next line.
  std::string read(std::string_view line, std::string_view& value);
  std::string text_of(simdjson::dom::element root, std::string_view& value) const;
};

std::string PartTexts::Impl::read(std::string_view line, std::string_view& value) {
  mended = false;
  line = core::without_byte_order_mark(line);  // of a file behind another
  simdjson::dom::element root;
  auto error = parser.parse(line.data(), line.size(), false).get(root);
  if (error == simdjson::SUCCESS) return text_of(root, value);
  const core::MendedJson made = core::mend_json(line);
  if (made.any()) error = parser.parse(made.text).get(root);
  if (error != simdjson::SUCCESS)
    return fmt::format("not JSON: {}; {}", simdjson::error_message(error),
        first_line(line).starts_with('[') ? kArray : "--bad-lines skip leaves it out");
  const bool surrogate = core::has_surrogate(made, field);
  mended = surrogate || !made.constant.empty() || !made.not_utf8.empty();
  if (bad != BadLines::replace) {
    constexpr std::string_view kHow = "; --bad-lines replace or skip continues";
    if (!made.constant.empty()) return core::why_no_constant(made.constant).append(kHow);
    if (!made.not_utf8.empty()) return std::string(made.not_utf8).append(kHow);
    if (surrogate) return core::why_no_surrogate(field).append(kHow);
  }
  return text_of(root, value);
}

std::string PartTexts::Impl::text_of(simdjson::dom::element root, std::string_view& value) const {
  simdjson::dom::object object;
  if (root.is_array()) return fmt::format("not a JSON object; {}", kArray);
  if (root.get(object) != simdjson::SUCCESS) return "not a JSON object";
  // The last of duplicate names wins, as in other parsers.
  std::optional<simdjson::dom::element> member;
  for (const auto& [name, found] : object)
    if (name == field) member = found;
  if (!member) return fmt::format("has no \"{}\"; give the field of the text with --field", field);
  if (member->get(value) != simdjson::SUCCESS) return fmt::format("\"{}\" is not a string", field);
  return {};
}

PartTexts::PartTexts(std::string field, BadLines bad) : impl_(std::make_unique<Impl>()) {
  impl_->field = std::move(field);
  impl_->bad = bad;
}
PartTexts::~PartTexts() = default;

LineFlaws PartTexts::each(
    const Batch& batch, const std::function<void(const Batch::Part&, std::string_view)>& take) {
  LineFlaws flaws;
  for (const auto& part : batch.parts) {
    const std::string_view piece = batch.piece(part);
    if (batch.detokenise) {
      take(part, wikitext_detokenised(piece));
      continue;
    }
    if (batch.format != Format::jsonl) {
      take(part, piece);
      continue;
    }
    std::string_view value;
    const std::string why = impl_->read(piece, value);
    if (why.empty()) {
      flaws.mended += impl_->mended ? 1 : 0;
      take(part, value);
      continue;
    }
    const std::string reason = fmt::format("{}:{}: {}", batch.source, part.line, why);
    if (impl_->bad == BadLines::error) core::bad_data("{}", reason);
    flaws.add({1, 0, reason});
  }
  return flaws;
}

std::vector<std::string> notes_of(
    const DocumentReader& reader, const DocumentOptions& options, const LineFlaws& flaws) {
  std::vector<std::string> lines;
  if (reader.format() == Format::jsonl && options.by_content)
    lines.push_back(fmt::format(
        "stdin: read as JSON lines, since it begins with {{; the \"{}\" of each line is a "
        "document; --format text encodes it unchanged",
        options.field));
  for (auto& line : reader.findings().notes(options.rules)) lines.push_back(std::move(line));
  if (flaws.skipped > 0)
    lines.push_back(fmt::format(
        "left out {}; the first: {}", core::counted(flaws.skipped, "line"), flaws.first));
  return lines;
}

std::uint64_t total_bytes(const std::vector<std::string>& paths) {
  std::uint64_t total = 0;
  for (const auto& path : paths) {
    if (path == "-" || !core::is_regular_file(path)) return 0;
    std::error_code error;
    total += std::filesystem::file_size(path, error);
    if (error) return 0;
  }
  return total;
}

}  // namespace text
