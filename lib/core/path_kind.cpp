#include "core/path_kind.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "core/file_text.h"
#include "core/plain_text.h"

namespace core {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

constexpr std::size_t kStartBytes = 4096;
constexpr std::size_t kMostEntries = 10'000;  // most entries of a folder that are inspected
constexpr std::size_t kRefBytes = 4096;
// The names of a model's weights in its folder.
constexpr std::array kWeightNames = {"model.safetensors"sv, "model.safetensors.index.json"sv,
    "pytorch_model.bin"sv, "pytorch_model.bin.index.json"sv};

// What what_path_is() says of each PathKind, in their order.
constexpr std::array kWhatIs = {"does not exist", "does not exist",
    "",  // a broken link: its target is named
    "is an empty file", "is a text file", "is a shard", "is a GGUF file", "is a safetensors file",
    "is a file of torch.save", "is a sentencepiece model",
    "is a Git LFS pointer instead of the file (git lfs pull downloads it)",
    "is a model's config.json", "is a tokenizer", "is an index of passages", "is a plain file",
    "cannot be read", "is a model's folder", "is an adapter's folder",
    "is a folder of a hub's cache", "is a folder of a hub's cache", "is a datastore",
    "is an index of n-grams", "is a tokenizer's folder", "is a trainer's folder of checkpoints",
    "is an empty folder", "is some other folder"};
static_assert(kWhatIs.size() == static_cast<std::size_t>(PathKind::folder) + 1);

bool folder_at(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string last_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// Returns the names in a folder, sorted; for a very large folder, only the first ones found.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
    if (names.size() == kMostEntries) break;
  }
  std::ranges::sort(names);
  return names;
}

// Whether the path is ORG/NAME in the hub's letters, and not just a missing file.
bool looks_like_hub_id(const std::string& path) {
  const auto slash = path.find('/');
  if (slash == 0 || slash == path.npos || path.find('/', slash + 1) != path.npos) return false;
  const auto is_name = [](std::string_view name) {
    return !name.empty() && std::isalnum(static_cast<unsigned char>(name[0])) &&
           std::ranges::all_of(name,
               [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  };
  const auto name = std::string_view(path).substr(slash + 1);
  for (const auto end : {".zst"sv, ".json"sv, ".txt"sv, ".safetensors"sv, ".gguf"sv, ".pt"sv})
    if (name.ends_with(end)) return false;
  return is_name(path.substr(0, slash)) && is_name(name) && !exists(path.substr(0, slash));
}

// Reads up to `kStartBytes` of a regular file; returns false if it cannot be read.
bool read_start(const std::string& path, std::string& start) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  start.resize(kStartBytes);
  const ssize_t n = ::read(fd, start.data(), start.size());
  ::close(fd);
  start.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return n >= 0;
}

bool begins_as_safetensors(std::string_view start) {
  std::uint64_t length = 0;
  if (start.size() <= sizeof length || start[sizeof length] != '{') return false;
  std::memcpy(&length, start.data(), sizeof length);
  return length >= 2 && length <= 100'000'000;
}

// Returns true for a pickle of protocol 2 to 5, and for a zip archive that torch.save wrote.
bool begins_as_torch_file(std::string_view start) {
  if (start.size() > 2 && start[0] == '\x80' && start[1] >= '\2' && start[1] <= '\5') return true;
  return start.starts_with("PK\3\4") && start.substr(0, 512).find("/data.pkl") != start.npos;
}

// The first field of a ModelProto is a piece: its text, then its score.
bool begins_as_sentencepiece(std::string_view start) {
  if (start.size() < 5 || start[0] != '\n' || start[2] != '\n' || start[3] >= start[1])
    return false;
  const auto score = 4 + static_cast<std::size_t>(static_cast<unsigned char>(start[3]));
  return score < start.size() && start[score] == '\x15';
}

PathKind file_kind(const std::string& path, const std::string& name) {
  std::string start;
  if (!read_start(path, start)) return PathKind::unreadable;
  if (start.empty()) return PathKind::empty;
  // The version, in either byte order, distinguishes GGUF from text.
  if (start.starts_with("GGUF") && start.substr(4, 4).find('\0') != start.npos)
    return PathKind::gguf;
  if (start.starts_with("version https://git-lfs")) return PathKind::lfs_pointer;
  if (start.starts_with("\x51\x2A\x4D\x18"sv)) return PathKind::shard;
  if (begins_as_safetensors(start)) return PathKind::safetensors;
  if (begins_as_torch_file(start)) return PathKind::torch_file;
  if (begins_as_sentencepiece(start)) return PathKind::sentencepiece;
  if (start.starts_with("TESSBM25")) return PathKind::passages;
  if (name == "config.json") return PathKind::config;
  if (name == "tokenizer.json") return PathKind::tokenizer;
  if (!what_is_no_text(start).empty() || start.find('\0') != start.npos)
    return PathKind::other_file;
  const auto good = utf8_length(start);
  const bool is_text = good + unfinished_bytes(start) == start.size();
  return is_text ? PathKind::text : PathKind::other_file;
}

PathKind folder_kind(const std::string& path, const std::string& name) {
  const auto names = names_in(path);
  const auto has = [&](std::string_view file) { return std::ranges::binary_search(names, file); };
  const auto has_any = [&](std::initializer_list<std::string_view> files) {
    return std::ranges::any_of(files, has);
  };
  // The trainer of an adapter may leave its model's config.json there.
  if (has("adapter_config.json") && !std::ranges::any_of(kWeightNames, has))
    return PathKind::adapter;
  if (has("config.json")) return PathKind::model;
  if (has("snapshots") && has_any({"refs", "blobs"})) return PathKind::hub_model;
  if (name.starts_with("models--")) return PathKind::hub_model;
  if (has("store.json")) return PathKind::datastore;
  if (has("ngrams.json")) return PathKind::ngrams;
  if (std::ranges::any_of(kCheckpointNames, has)) return PathKind::checkpoints;
  if (has_any({"tokenizer.json", "tokenizer.model", "vocab.json"}))
    return PathKind::tokenizer_folder;
  if (std::ranges::any_of(names, [](const auto& one) { return one.starts_with("models--"); }))
    return PathKind::hub_cache;
  return names.empty() ? PathKind::empty_folder : PathKind::folder;
}

std::string home(const char* variable, const char* rest) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? "" : value + std::string(rest);
}

// Returns the folder of the model in the hub's cache; empty if it is not there.
std::string cached_hub_model(const std::string& id) {
  std::string name = "models--" + id;
  if (const auto slash = name.find('/'); slash != name.npos) name.replace(slash, 1, "--");
  for (const auto& cache :
      {home("HF_HUB_CACHE", ""), home("HF_HOME", "/hub"), home("HOME", "/.cache/huggingface/hub")})
    if (!cache.empty() && folder_at(cache + "/" + name)) return cache + "/" + name;
  return {};
}

}  // namespace

PathKind path_kind(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    if (fs::is_symlink(fs::symlink_status(path, error))) return PathKind::broken_link;
    return looks_like_hub_id(path) ? PathKind::hub_id : PathKind::nothing;
  }
  if (fs::is_directory(status)) return folder_kind(path, last_name(path));
  if (!fs::exists(status)) return PathKind::unreadable;
  return fs::is_regular_file(status) ? file_kind(path, last_name(path)) : PathKind::other_file;
}

bool begins_with(const std::string& path, std::string_view bytes) {
  std::string start(bytes.size(), '\0');
  start.resize(read_fully(*open_source(path), std::as_writable_bytes(std::span(start))));
  return start == bytes;
}

std::string what_path_is(const std::string& path) {
  const PathKind kind = path_kind(path);
  if (kind != PathKind::broken_link) return kWhatIs[static_cast<std::size_t>(kind)];
  std::error_code ignored;
  return fmt::format(
      "is a link to {}, which does not exist", fs::read_symlink(path, ignored).string());
}

void refuse_folder(const std::string& path) {
  const bool known = path_kind(path) != PathKind::folder;
  fail(Code::no_input, "{}: {}; give a file", path, known ? what_path_is(path) : "is a folder");
}

std::string followed_snapshot(const std::string& path) {
  if (path_kind(path) != PathKind::hub_model) return path;
  const std::string snapshots = path + "/snapshots";
  if (const auto ref = path + "/refs/main"; exists(ref)) {
    std::string revision = read_file(ref, kRefBytes);
    revision = revision.substr(0, revision.find_first_of(" \t\r\n"));
    const bool stays = !revision.empty() && revision.find('/') == revision.npos && revision != "..";
    if (stays && folder_at(snapshots + "/" + revision)) return snapshots + "/" + revision;
  }
  const auto found = names_in(snapshots);
  if (found.size() == 1) return snapshots + "/" + found[0];
  fail(Code::no_input, "{}: {}", path,
      found.empty() ? "a hub cache without a snapshot; download the model again"
                    : "refs/main names no snapshot; give one of snapshots/*");
}

void refuse_hub_id(const std::string& id) {
  if (const auto cached = cached_hub_model(id); !cached.empty())
    fail(Code::no_input, "{}: does not exist; a model of that name is in the hub cache: give {}",
        id, cached);
  fail(Code::no_input,
      "{}: does not exist, and models are not downloaded; for a model of the hub, run hf "
      "download {} --local-dir DIR (formerly huggingface-cli download) and give DIR",
      id, id);
}

}  // namespace core
