#include "model/checkpoint_files.h"

#include <charconv>

#include "core/json.h"

namespace model {
namespace {

constexpr std::string_view kBefore = "state.", kAfter = "safetensors";
constexpr const char* kPartsKey = "parts";
constexpr int kPartsDepth = 4;

// The numbers of a shape; -1 if no tensor can have it.
std::int64_t shape_size(const std::vector<std::int64_t>& shape) {
  std::int64_t numbers = 1;
  for (const auto size : shape) {
    if (size < 0 || (size > 0 && numbers > std::numeric_limits<std::int64_t>::max() / size))
      return -1;
    numbers *= size;
  }
  return numbers;
}

PartMap stated_parts(const SafetensorsReader& file) {
  PartMap parts;
  const auto found = file.metadata().find(kPartsKey);
  if (found == file.metadata().end()) return parts;
  const auto json = core::parse_json(found->second, file.name(), kPartsDepth);
  if (!json.is_object()) core::bad_data("{}: \"{}\" is no object", file.name(), kPartsKey);
  for (const auto& [name, part] : json.items())
    parts[name] = {core::get<std::vector<std::int64_t>>(part, "shape", file.name()),
        core::get<std::int64_t>(part, "begin", file.name())};
  return parts;
}

// The digest of a file: that of its tensors, and of where its parts belong.
std::string with_parts(const std::string& digest, const Metadata& metadata) {
  const auto parts = metadata.find(kPartsKey);
  return parts == metadata.end() ? digest : core::hash128(digest + parts->second).hex();
}

}  // namespace

std::string checkpoint_file(std::size_t part) {
  return std::string(kBefore) + (part == 0 ? "" : std::to_string(part) + ".") + std::string(kAfter);
}

bool is_checkpoint_file(std::string_view name) {
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return false;
  std::size_t part = 0;
  const auto digits = name.substr(kBefore.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), part);
  return checkpoint_file(part) == name;
}

std::string write_checkpoint_file(
    core::ByteSink& sink, const TensorMap& tensors, const PartMap& parts) {
  Metadata metadata;
  if (!parts.empty()) {
    auto json = core::Json::object();
    for (const auto& [name, part] : parts)
      json[name] = {{"shape", part.shape}, {"begin", part.begin}};
    metadata[kPartsKey] = core::dump(json);
  }
  const auto digest =
      write_safetensors(sink, NamedTensors(tensors.begin(), tensors.end()), metadata);
  return with_parts(digest.hex(), metadata);
}

CheckpointFiles::CheckpointFiles(const std::string& folder, const std::vector<std::string>& digests)
    : folder_(folder) {
  for (std::size_t file = 0; file < digests.size(); ++file) add_file(file, digests[file]);
  for (auto& [name, whole] : tensors_) {
    auto& pieces = whole.pieces;
    std::sort(pieces.begin(), pieces.end(),
        [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    std::int64_t covered = 0;
    for (const auto& piece : pieces) {
      if (piece.begin != covered) break;
      covered = piece.end;
    }
    if (covered != shape_size(whole.shape) || covered != whole.size())
      core::bad_data("{}: the parts of {} do not cover its numbers once", folder_, name);
  }
}

void CheckpointFiles::add_file(std::size_t file, const std::string& digest) {
  const std::string path = folder_ + "/" + checkpoint_file(file);
  files_.push_back(std::make_unique<SafetensorsReader>(path));
  const auto& reader = *files_.back();
  reader.verify();
  const auto found = reader.metadata().find(kDigestKey);
  if (found == reader.metadata().end() || with_parts(found->second, reader.metadata()) != digest)
    core::bad_data(
        "{}: its tensors do not match state.json (XXH3 {}); one of the files was replaced", path,
        digest);
  const auto parts = stated_parts(reader);
  for (const auto& [name, entry] : reader.entries()) {
    const auto part = parts.find(name);
    const PartOf place = part == parts.end() ? PartOf{entry.shape, 0} : part->second;
    const auto [at, fresh] = tensors_.try_emplace(name, Whole{place.shape, {}});
    const bool fits =
        place.begin >= 0 &&
        place.begin <= std::numeric_limits<std::int64_t>::max() - entry.elements() &&
        (fresh || (part != parts.end() && at->second.shape == place.shape &&
                      files_[at->second.pieces[0].file]->entry(name).dtype == entry.dtype));
    if (!fits) core::bad_data("{}: {} does not match the other files' parts of it", path, name);
    at->second.pieces.push_back({place.begin, place.begin + entry.elements(), file});
  }
}

std::vector<std::string> CheckpointFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, whole] : tensors_) names.push_back(name);
  return names;
}

const CheckpointFiles::Whole& CheckpointFiles::of(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) core::bad_data("{}: has no tensor {}", folder_, name);
  return found->second;
}

torch::Tensor CheckpointFiles::tensor(const std::string& name) const {
  const Whole& whole = of(name);
  if (whole.pieces.size() == 1) return files_[whole.pieces[0].file]->read(name).view(whole.shape);
  return numbers(name, 0, whole.size()).view(whole.shape);
}

torch::Tensor CheckpointFiles::numbers(
    const std::string& name, std::int64_t begin, std::int64_t end) const {
  const Whole& whole = of(name);
  if (begin < 0 || begin > end || end > whole.size())
    core::bad_data("{}: {} has {} numbers, not {}", folder_, name, whole.size(), end);
  const auto dtype = files_[whole.pieces[0].file]->entry(name).dtype;
  const auto out = torch::empty({end - begin}, dtype);
  for (const auto& piece : whole.pieces) {
    const auto from = std::max(begin, piece.begin), to = std::min(end, piece.end);
    if (from >= to) continue;
    files_[piece.file]->read_range(
        name, from - piece.begin, out.narrow(0, from - begin, to - from));
  }
  return out;
}

}  // namespace model
