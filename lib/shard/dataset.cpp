#include "shard/dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/io.h"
#include "shard/elements.h"
#include "shard/parts.h"
#include "shard/text_reader.h"

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

}  // namespace

void expect_same_header(const File& a, const File& b) {
  if (a.header() == b.header()) return;
  core::fail(core::Code::bad_data, "{} ({}) and {} ({}) do not match: {}", a.name(),
             a.trailer().fingerprint.hex(), b.name(), b.trailer().fingerprint.hex(),
             difference(a.header(), b.header()));
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
      if (std::find(provenance_.begin(), provenance_.end(), entry) == provenance_.end())
        provenance_.push_back(entry);
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

template <class T>
void Dataset::read_across(std::uint64_t offset, std::span<T> out) const {
  const std::uint64_t item_bytes = stored_bytes<T>(header().dtype);
  const std::uint64_t element_bytes = size_of(header().dtype);
  const std::uint64_t n_elements = out.size() * item_bytes / element_bytes;
  if (offset > size() || n_elements > size() - offset)
    core::fail(core::Code::bad_data, "{}: elements {} to {} are out of range; it has {}", name(),
               offset, offset + n_elements, size());
  auto i = static_cast<std::size_t>(std::upper_bound(start_.begin(), start_.end() - 1, offset) -
                                    start_.begin() - 1);
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

}  // namespace shard
