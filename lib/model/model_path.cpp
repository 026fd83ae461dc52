#include "model/model_path.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"
#include "core/path_kind.h"
#include "model/adapter.h"
#include "model/unfinished.h"

namespace model {
namespace {

using core::Code;
using core::fail;
using core::PathKind;
namespace fs = std::filesystem;

std::string folder_of(const std::string& file) {
  const auto slash = file.rfind('/');
  return slash == file.npos ? "." : slash == 0 ? "/" : file.substr(0, slash);
}

// Returns the folders inside that are models, for example a trainer's checkpoint-500.
std::string model_inside(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (core::exists(at->path().string() + "/config.json")) found.push_back(at->path().string());
  std::sort(found.begin(), found.end());
  return found.empty() ? "" : "; a folder in it is one: give " + found.back();
}

std::string gguf_inside(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".gguf") return at->path().string();
  return {};
}

[[noreturn]] void refuse_folder_without_config(const std::string& path, PathKind kind) {
  constexpr const char* kNone = "not a model's folder: it has no config.json";
  if (kind == PathKind::adapter) {
    const auto base = adapter_base(path);
    fail(Code::bad_data, "{}: is an adapter{}, not a model; give the model and --adapter {}", path,
         base.empty() ? "" : " of " + base, path);
  }
  if (kind == PathKind::hub_cache)
    fail(Code::no_input, "{}: is a hub cache of several models; give one of its models--*", path);
  if (kind == PathKind::checkpoints)
    fail(Code::no_input,
         "{}: {}; it has a checkpoint of another program: convert it: model import {} -o DIR", path,
         kNone, path);
  if (const auto gguf = gguf_inside(path); !gguf.empty())
    fail(Code::no_input, "{}: {}; it has a GGUF file: give {}", path, kNone, gguf);
  if (core::exists(path + "/params.json"))
    fail(Code::no_input,
         "{}: {}; params.json belongs to Meta's or Mistral's own format: use the model's files for "
         "transformers",
         path, kNone);
  if (kind == PathKind::datastore || kind == PathKind::ngrams || kind == PathKind::empty_folder ||
      kind == PathKind::tokenizer_folder)
    fail(Code::no_input, "{}: {}; it {}", path, kNone, core::what_path_is(path));
  fail(Code::no_input, "{}: {}{}", path, kNone, model_inside(path));
}

// Returns the folder that a file represents; throws for any other file.
std::string folder_of_file(const std::string& path, PathKind kind, Beside beside) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string folder = folder_of(path);
  const bool weights = name == "model.safetensors" || name == "model.safetensors.index.json" ||
                       (name.starts_with("model-") && name.ends_with(".safetensors"));
  if (name == "config.json" || (weights && core::exists(folder + "/config.json")))
    return model_folder(folder, beside);
  switch (kind) {
    case PathKind::torch_file:
      fail(Code::bad_data,
           "{}: is a file of torch.save, not a model's folder; convert it: model import {} -o DIR",
           path,
           name == "pytorch_model.bin" && core::exists(folder + "/config.json") ? folder : path);
    case PathKind::safetensors:
      fail(Code::bad_data,
           "{}: has only weights{}; give the folder with config.json and model.safetensors", path,
           name.starts_with("adapter") ? " (of an adapter)" : "");
    case PathKind::sentencepiece:
    case PathKind::tokenizer:
      fail(Code::bad_data, "{}: {}, not a model's folder; give the folder", path,
           core::what_path_is(path).substr(3));
    default:
      fail(Code::bad_data, "{}: {}; give a model's folder", path, core::what_path_is(path));
  }
}

}  // namespace

std::string model_folder(const std::string& path, Beside beside) {
  const PathKind kind = core::path_kind(path);
  switch (kind) {
    case PathKind::hub_id:
      core::refuse_hub_id(path);
    case PathKind::nothing:
    case PathKind::broken_link:
    case PathKind::unreadable:
      fail(Code::no_input, "{}: {}; give a model's folder", path, core::what_path_is(path));
    case PathKind::gguf:
      return path;
    case PathKind::hub_model:
      return model_folder(core::followed_snapshot(path), beside);
    case PathKind::model:
      if (beside == Beside::refused && core::exists(path + "/" + kAdapterConfigFile))
        fail(Code::bad_config,
             "{}: has {} beside config.json: give --adapter {} to apply the adapter, or move {} "
             "away to use the model alone",
             path, kAdapterConfigFile, path, kAdapterConfigFile);
      return path;
    case PathKind::adapter:
    case PathKind::hub_cache:
    case PathKind::datastore:
    case PathKind::ngrams:
    case PathKind::tokenizer_folder:
    case PathKind::checkpoints:
    case PathKind::empty_folder:
    case PathKind::folder:
      if (const auto run = unfinished_run(path)) return run->folder;
      refuse_folder_without_config(path, kind);
    default:
      return folder_of_file(path, kind, beside);
  }
}

}  // namespace model
