// Save and load the parts of a checkpoint: weights and States.

#include "model/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>

#include "core/file_text.h"
#include "core/temporary_file.h"
#include "core/units.h"

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

namespace fs = std::filesystem;
using core::Code;
using core::fail;

constexpr std::string_view kPrefix = "step-", kTemporary = ".tmp.", kOld = ".old";
constexpr const char* kFactsFile = "state.json";
constexpr std::size_t kFactsLimit = std::size_t{1} << 26;  // bytes
constexpr std::int64_t kCheckpointVersion = 1;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns N of "step-N", or nothing.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(kPrefix.size());
  if (!is_number(digits) || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  return core::read_number<std::int64_t>(digits);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    fail(Code::io, "{}: cannot read: {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns a name that no other process uses.
std::string temporary(const std::string& path) {
  return path + std::string(kTemporary) + std::to_string(::getpid());
}

/// Whether the name comes from temporary(), for a checkpoint or for one that is being removed or
/// replaced.
bool is_temporary(const std::string& name) {
  const auto mark = name.rfind(kTemporary);
  if (mark == std::string::npos ||
      !is_number(std::string_view(name).substr(mark + kTemporary.size())))
    return false;
  const std::string before = name.substr(0, mark);
  return step_of(before.ends_with(kOld) ? before.substr(0, before.size() - kOld.size()) : before)
      .has_value();
}

// Returns the file name of process `part`: state.safetensors of process 0, state.N.safetensors of
// process N.
std::string checkpoint_file(std::size_t part) {
  return std::string(kBefore) + (part == 0 ? "" : std::to_string(part) + ".") + std::string(kAfter);
}

// Returns whether checkpoint_file() gives this name to some process.
bool is_checkpoint_file(std::string_view name) {
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter)) return false;
  const auto rest = name.substr(kBefore.size());
  const auto part = core::read_number<std::size_t>(rest.substr(0, rest.find('.')));
  return checkpoint_file(part.value_or(0)) == name;
}

/// Whether the folder holds only files of save_checkpoint().
bool is_own(const std::string& path) {
  return core::holds_only(
      path, [](std::string_view name) { return is_checkpoint_file(name) || name == kFactsFile; });
}

/// Throws Error{cannot_create} if the path exists and is no checkpoint; its files are kept.
void expect_own(const std::string& path) {
  if (fs::exists(fs::symlink_status(path)) && !is_own(path))
    fail(Code::cannot_create,
        "{}: cannot create: the folder has other files; move it away or give another", path);
}

void remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(Code::io, "{}: cannot remove: {}", path, error.message());
}

/// Renames `from` to `to` and removes a previous `to`.
void replace_folder(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::exists(to, error)) return core::rename_durably(from, to);
#ifdef RENAME_EXCHANGE
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    core::sync_folder(fs::path(to).parent_path().string());
    return remove_folder(from);
  }
#endif
  // The file system cannot exchange names: for a moment neither exists, but never half of one.
  const std::string old = temporary(to + std::string(kOld));
  expect_own(old), remove_folder(old);
  core::rename_durably(to, old);
  core::rename_durably(from, to);
  remove_folder(old);
}

std::string checkpoint_path(const std::string& folder, std::int64_t step) {
  return folder + "/" + std::string(kPrefix) + std::to_string(step);
}

// Calls `work`, and removes `building` if it throws.
template <class F> auto or_remove(const std::string& building, const F& work) {
  try {
    return work();
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(building, ignored);
    throw;
  }
}

// Writes a process's tensors; those that `parts` names are parts. Returns the digest of the
// tensors and of their places. Throws Error{io}.
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

}  // namespace

CheckpointFiles::CheckpointFiles(const std::string& folder, const std::vector<std::string>& digests)
    : folder_(folder) {
  for (std::size_t file = 0; file < digests.size(); ++file) add_file(file, digests[file]);
  for (auto& [name, whole] : tensors_) {
    auto& pieces = whole.pieces;
    std::ranges::sort(pieces, {}, &Piece::begin);
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

std::vector<std::string> CheckpointFiles::names() const { return core::keys_of(tensors_); }

const CheckpointFiles::Whole& CheckpointFiles::of(const std::string& name) const {
  return named_tensor(tensors_, name, folder_);
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

std::string begin_checkpoint(const std::string& folder, std::int64_t step) {
  core::make_folder(folder);
  const std::string path = checkpoint_path(folder, step), building = temporary(path);
  expect_own(path);
  expect_own(building), remove_folder(building);
  core::make_new_folder(building);
  return building;
}

std::string save_part(const std::string& building, std::size_t part, const Checkpoint& checkpoint) {
  core::Output data(building + "/" + checkpoint_file(part));
  std::string digest = write_checkpoint_file(data, checkpoint.tensors, checkpoint.parts);
  data.commit();
  return digest;
}

std::string end_checkpoint(const std::string& building, const std::string& folder,
    std::int64_t step, const Checkpoint& checkpoint, const std::vector<std::string>& digests) {
  return or_remove(building, [&] {
    core::OrderedJson outer = core::OrderedJson::object();
    const std::string facts = core::dump(checkpoint.facts);
    outer["version"] = kCheckpointVersion;
    outer["tensors"] = save_part(building, 0, checkpoint);
    if (!digests.empty()) outer["parts"] = digests;
    outer["facts_digest"] = core::hash128(facts).hex();
    outer["facts"] = checkpoint.facts;
    core::write_file(building + "/" + kFactsFile, core::dump(outer) + "\n");
    core::sync_folder(building);
    std::string path = checkpoint_path(folder, step);
    replace_folder(building, path);
    return path;
  });
}

std::string save_checkpoint(
    const std::string& folder, std::int64_t step, const Checkpoint& checkpoint) {
  return end_checkpoint(begin_checkpoint(folder, step), folder, step, checkpoint, {});
}

Checkpoint open_checkpoint(const std::string& path) {
  const std::string facts_path = path + "/" + kFactsFile;
  const core::Json outer = core::read_json(facts_path, kFactsLimit);
  const auto version = core::get<std::int64_t>(outer, "version", facts_path);
  if (version != kCheckpointVersion)
    core::bad_data("{}: checkpoint version {} is not supported; this program reads version {}",
        facts_path, version, kCheckpointVersion);
  Checkpoint checkpoint;
  checkpoint.origin = path;
  checkpoint.facts = core::get<core::Json>(outer, "facts", facts_path);
  if (core::hash128(core::dump(checkpoint.facts)).hex() !=
      core::get<std::string>(outer, "facts_digest", facts_path))
    core::bad_data("{}: corrupt file: checksum mismatch of its facts", facts_path);
  std::vector<std::string> digests;
  if (outer.contains("parts"))
    digests = core::get<std::vector<std::string>>(outer, "parts", facts_path);
  digests.insert(digests.begin(), core::get<std::string>(outer, "tensors", facts_path));
  checkpoint.files = std::make_shared<CheckpointFiles>(path, digests);
  return checkpoint;
}

Checkpoint load_checkpoint(const std::string& path) {
  Checkpoint checkpoint = open_checkpoint(path);
  for (const auto& name : checkpoint.files->names())
    checkpoint.tensors[name] = checkpoint.files->tensor(name);
  checkpoint.files.reset();
  return checkpoint;
}

bool is_checkpoint_name(const std::string& path) {
  return step_of(fs::path(path).filename().string()).has_value();
}

std::vector<CheckpointPath> checkpoints(const std::string& folder) {
  std::vector<CheckpointPath> found;
  for (const auto& name : names_in(folder))
    if (const auto step = step_of(name)) found.push_back({*step, folder + "/" + name});
  std::ranges::sort(found, {}, &CheckpointPath::step);
  return found;
}

std::optional<CheckpointPath> latest_checkpoint(const std::string& folder) {
  const auto all = checkpoints(folder);
  if (all.empty()) return std::nullopt;
  return all.back();
}

void remove_checkpoint(const CheckpointPath& checkpoint) {
  const std::string going = temporary(checkpoint.path);
  if (!is_own(checkpoint.path)) return;
  expect_own(going), remove_folder(going);
  core::rename_durably(checkpoint.path, going);
  remove_folder(going);
}

void remove_checkpoints(const std::string& folder, std::optional<std::int64_t> but) {
  for (const auto& checkpoint : checkpoints(folder))
    if (checkpoint.step != but) remove_checkpoint(checkpoint);
}

void remove_leftovers(const std::string& folder) {
  for (const auto& name : names_in(folder))
    if (is_temporary(name) && is_own(folder + "/" + name)) remove_folder(folder + "/" + name);
}

torch::Tensor Checkpoint::tensor(const std::string& name) const {
  return files && !tensors.contains(name) ? files->tensor(name)
                                          : named_tensor(tensors, name, origin);
}

torch::Tensor Checkpoint::numbers(
    const std::string& name, std::int64_t begin, std::int64_t end) const {
  const auto found = tensors.find(name);
  if (found == tensors.end() && files) return files->numbers(name, begin, end);
  const auto all = tensor(name).flatten();
  if (begin < 0 || begin > end || end > all.numel())
    core::bad_data("{}: {} has {} numbers, not {}", origin, name, all.numel(), end);
  return all.narrow(0, begin, end - begin);
}

void Checkpoint::get_weights(const std::string& name, nn::Model& model) const {
  for (const auto& [weight, target] : model.named_weights())
    get_weight(name + "." + weight, target);
}

void Checkpoint::get_weight(const std::string& name, const torch::Tensor& weight) const {
  const torch::NoGradGuard no_grad;
  const auto saved = tensor(name);
  if (saved.sizes() != weight.sizes() || saved.scalar_type() != weight.scalar_type())
    core::bad_data("{}: {} is {} {}, but in the model {} {}", origin, name,
        c10::toString(saved.scalar_type()), fmt::format("[{}]", fmt::join(saved.sizes(), ", ")),
        c10::toString(weight.scalar_type()), fmt::format("[{}]", fmt::join(weight.sizes(), ", ")));
  torch::Tensor(weight).copy_(saved);
}

void Checkpoint::put_state(const std::string& name, const nn::State& state) {
  auto counts = core::Json::object(), names = core::Json::array();
  for (const auto& [part, tensor] : state.tensors) {
    tensors[name + "." + part] = tensor.detach();
    names.push_back(part);
  }
  for (const auto& [part, count] : state.counts) counts[part] = count;
  facts[name] = {{"counts", counts}, {"tensors", names}};
  if (!state.by_step.empty()) facts[name]["by_step"] = state.by_step;
}

nn::State Checkpoint::get_state(const std::string& name, torch::Device device) const {
  nn::State state;
  const auto part = core::get<core::Json>(facts, name.c_str(), origin);
  for (const auto& tensor_name : core::get<std::vector<std::string>>(part, "tensors", origin))
    state.tensors[tensor_name] = tensor(name + "." + tensor_name).to(device);
  state.counts = core::get<std::map<std::string, std::int64_t>>(part, "counts", origin);
  if (part.contains("by_step"))
    state.by_step = core::get<std::set<std::string>>(part, "by_step", origin);
  return state;
}

}  // namespace model
