#include "shard/dataset.h"

#include "core/plain_text.h"
#include "shard/reader.h"
#include "shard/unpacked_source.h"

namespace shard {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{64} << 20;  // shared by all files

File open_shard(const std::string& path, std::size_t cache_bytes) {
  if (auto bytes = spooled_or_made(path)) return File(std::move(bytes), cache_bytes);
  return File(path, cache_bytes);
}

std::string difference(const Header& a, const Header& b) {
  const auto both = [](std::string_view what, const auto& x, const auto& y) {
    return fmt::format("{} {} and {}", what, x, y);
  };
  if (a.kind != b.kind) return both("kinds", name_of(a.kind), name_of(b.kind));
  if (a.tokenizer != b.tokenizer)
    return both("tokenizers", core::hash128(a.tokenizer).hex(), core::hash128(b.tokenizer).hex());
  if (a.vocabulary != b.vocabulary) return both("vocabularies of", a.vocabulary, b.vocabulary);
  if (a.width != b.width) return both("widths", a.width, b.width);
  if (a.dtype != b.dtype) return both("types", name_of(a.dtype), name_of(b.dtype));
  if (a.marked != b.marked) return both("marks,", a.marked, b.marked);
  if (a.unit != b.unit) return both("units", a.unit, b.unit);
  if (a.unit_length != b.unit_length) return both("unit lengths", a.unit_length, b.unit_length);
  return both("fingerprints of the ordered data", a.data_fingerprint, b.data_fingerprint);
}

constexpr const char* kPart = "part";

// Finds each part of a command among the files. Empty if they are not parts of one command or a
// part occurs twice. `twice` is the first file of a repeated part.
struct Found {
  std::map<std::int64_t, std::size_t> place;  // by part
  std::int64_t count = 0;
  std::size_t twice = 0;
};

std::optional<Found> find_parts(const std::vector<File>& files) {
  Found found;
  std::vector<core::OrderedJson> first;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto entries = files[i].trailer().provenance;
    const auto part = take_part(entries);
    if (!part || (i > 0 && (entries != first || part->count != found.count))) return std::nullopt;
    if (i == 0) first = std::move(entries), found.count = part->count;
    if (!found.place.emplace(part->index, i).second && found.twice == 0) found.twice = i;
  }
  return found;
}

// If some are parts, all must be parts of one command.
void refuse_mixed(const std::vector<File>& files) {
  const auto whole_of = [](const File& file) {
    auto entries = file.trailer().provenance;
    const auto part = take_part(entries);
    return std::pair(part ? part->count : 0, entries);
  };
  const auto part =
      std::ranges::find_if(files, [&](const File& file) { return whole_of(file).first > 0; });
  if (part == files.end()) return;
  for (const auto& file : files)
    if (whole_of(file) != whole_of(*part))
      core::bad_usage(
          "{}: belongs to another command than {}; merge the parts of each command separately",
          file.name(), part->name());
}

// Sorts the parts of one command if each is present exactly once. Otherwise returns false and
// leaves `files` unchanged.
bool order_parts(std::vector<File>& files) {
  const auto found = find_parts(files);
  if (!found || found->twice > 0 || std::ssize(found->place) != found->count) return false;
  std::vector<File> ordered;
  for (const auto& [part, at] : found->place) ordered.push_back(std::move(files[at]));
  files = std::move(ordered);
  return true;
}

}  // namespace

void expect_same_header(const File& a, const File& b) {
  if (a.header() == b.header()) return;
  core::bad_data("{} ({}) and {} ({}) do not match: {}", a.name(), a.trailer().fingerprint.hex(),
      b.name(), b.trailer().fingerprint.hex(), difference(a.header(), b.header()));
}

Dataset::Dataset(const std::vector<std::string>& paths) {
  const auto sources = core::input_paths(paths);
  for (const auto& path : sources) files_.push_back(open_shard(path, kCacheBytes / sources.size()));
  of_parts_ = order_parts(files_);

  Content content;
  start_.push_back(0);
  for (auto& file : files_) {
    expect_same_header(files_.front(), file);
    Documents documents = file.take_documents();
    if (documents_.size() == 0) {
      documents_ = std::move(documents);
    } else {
      documents_.append(documents, start_.back());
    }
    start_.push_back(start_.back() + file.size());
    content.append(file.content());
    auto entries = file.trailer().provenance;
    if (of_parts_) take_part(entries);
    for (const auto& entry : entries)
      if (std::ranges::find(provenance_, entry) == provenance_.end()) provenance_.push_back(entry);
  }
  fingerprint_ = shard::fingerprint(header(), content);
}

Fingerprints Dataset::fingerprints() const {
  Fingerprints all = {fingerprint_.hex()};
  for (const auto& file : files_) all.insert(file.trailer().fingerprint.hex());
  return all;
}

std::string Dataset::name() const {
  const std::string& first = files_.front().name();
  return files_.size() == 1 ? first : fmt::format("{} and {} more", first, files_.size() - 1);
}

template <class T> void Dataset::read_across(std::uint64_t offset, std::span<T> out) const {
  const std::uint64_t item_bytes = stored_bytes<T>(header().dtype);
  const std::uint64_t element_bytes = size_of(header().dtype);
  const std::uint64_t n_elements = out.size() * item_bytes / element_bytes;
  if (offset > size() || n_elements > size() - offset)
    core::bad_data("{}: elements {} to {} are out of range; it has {}", name(), offset,
        offset + n_elements, size());
  auto i = static_cast<std::size_t>(
      std::upper_bound(start_.begin(), start_.end() - 1, offset) - start_.begin() - 1);
  for (; !out.empty(); ++i) {
    const std::uint64_t left = (start_[i + 1] - offset) * element_bytes / item_bytes;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), left));
    files_[i].read(offset - start_[i], out.first(n));
    out = out.subspan(n);
    offset += n * item_bytes / element_bytes;
  }
}

void Dataset::read(std::uint64_t offset, std::span<std::uint32_t> out) const {
  read_across(offset, out);
}
void Dataset::read(std::uint64_t offset, std::span<std::uint64_t> out) const {
  read_across(offset, out);
}
void Dataset::read(std::uint64_t offset, std::span<float> out) const { read_across(offset, out); }
void Dataset::read(std::uint64_t offset, std::span<std::byte> out) const {
  read_across(offset, out);
}

std::string write_names(const std::string& path, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    if (name.find('\n') != name.npos) core::bad_data("{}: a name with a newline", path);
    text += name;
    text += '\n';
  }
  core::write_file(path, text);
  return core::hash128(text).hex();
}

std::vector<std::string> read_names(
    const std::string& path, std::uint64_t count, const std::string& hash) {
  const std::string text = core::read_text(path, std::size_t{1} << 36);
  if (core::hash128(text).hex() != hash)
    core::bad_data("{}: corrupt file: checksum mismatch", path);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == text.npos || names.size() == count) break;
    names.push_back(text.substr(at, end - at));
    at = end + 1;
    if (core::utf8_length(names.back()) != names.back().size()) break;
    if (at == text.size() && names.size() == count) return names;
  }
  core::bad_data("{}: does not have {} lines of names", path, count);
}

void put_part(core::OrderedJson& options, const core::Part& part) {
  options[kPart] = fmt::format("{}/{}", part.index + 1, part.count);
}

std::optional<core::Part> take_part(std::vector<core::OrderedJson>& provenance) {
  if (provenance.empty() || !provenance.back().is_object()) return std::nullopt;
  auto& entry = provenance.back();
  const auto options = entry.find("options");
  if (options == entry.end() || !options->is_object()) return std::nullopt;
  const auto said = options->find(kPart);
  if (said == options->end() || !said->is_string()) return std::nullopt;
  const auto text = said->get<std::string>();
  if (text.find('/') == text.npos) return std::nullopt;
  try {
    const core::Part part = core::part(text);
    options->erase(kPart);
    return part;
  } catch (const core::Error&) {  // not written by this program
    return std::nullopt;
  }
}

void refuse_incomplete(const std::vector<File>& files) {
  const auto found = find_parts(files);
  if (!found) return refuse_mixed(files);
  if (found->twice > 0) core::bad_usage("{}: this part is given twice", files[found->twice].name());
  for (std::int64_t part = 0; part < found->count; ++part)
    if (found->place.count(part) == 0)
      core::bad_usage("{}: is one of {} parts, of which part {} is missing", files[0].name(),
          found->count, part + 1);
}

}  // namespace shard
