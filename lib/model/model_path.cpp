#include "model/model_path.h"

#include <filesystem>

#include "core/file_text.h"
#include "core/path_kind.h"
#include "model/checkpoint.h"
#include "model/folder.h"
#include "nn/layers/layers.h"

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
    core::bad_data("{}: is an adapter{}, not a model; give the model and --adapter {}", path,
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
      core::bad_data(
          "{}: is a file of torch.save, not a model's folder; convert it: model import {} -o DIR",
          path,
          name == "pytorch_model.bin" && core::exists(folder + "/config.json") ? folder : path);
    case PathKind::safetensors:
      core::bad_data(
          "{}: has only weights{}; give the folder with config.json and model.safetensors", path,
          name.starts_with("adapter") ? " (of an adapter)" : "");
    case PathKind::sentencepiece:
    case PathKind::tokenizer:
      core::bad_data("{}: {}, not a model's folder; give the folder", path,
          core::what_path_is(path).substr(3));
    default: core::bad_data("{}: {}; give a model's folder", path, core::what_path_is(path));
  }
}

// Prefixes of the names of a checkpoint's tensors (train/run_folder.h, train/learner.h).
constexpr const char* kKept = "candidate.";
constexpr const char* kTerms = "lora.";

bool is_run(const std::string& folder) {
  const std::string config = folder + "/config.json";
  if (!core::exists(config)) return false;
  const auto json = core::read_json(config, kConfigLimit);
  return json.is_object() && json.contains("tessera") && json["tessera"].is_object() &&
         json["tessera"].contains("training");
}

// Returns how many weights were summed under "candidate."; 0: it holds the best weights, or none.
std::int64_t summed(const Checkpoint& checkpoint) {
  return core::get<std::int64_t>(checkpoint.facts, "summed", checkpoint.origin);
}

template <class T>
T value_or(
    const core::Json& object, const char* key, const T& otherwise, const std::string& origin) {
  return object.contains(key) ? core::get<T>(object, key, origin) : otherwise;
}

std::string after_update(const char* what, std::int64_t step) {
  return fmt::format("the {} after step {}", what, step);
}

std::string of_best(const char* what, const Checkpoint& checkpoint) {
  return fmt::format("the {} of its best validation so far, {:.4g} after step {}", what,
      core::get<double>(checkpoint.facts, "best_score", checkpoint.origin),
      core::get<std::int64_t>(checkpoint.facts, "best_step", checkpoint.origin));
}

}  // namespace

std::string model_folder(const std::string& path, Beside beside) {
  const PathKind kind = core::path_kind(path);
  switch (kind) {
    case PathKind::hub_id: core::refuse_hub_id(path);
    case PathKind::nothing:
    case PathKind::broken_link:
    case PathKind::unreadable:
      fail(Code::no_input, "{}: {}; give a model's folder", path, core::what_path_is(path));
    case PathKind::gguf: return path;
    case PathKind::hub_model: return model_folder(core::followed_snapshot(path), beside);
    case PathKind::model:
      if (beside == Beside::refused && core::exists(path + "/" + kAdapterConfigFile))
        core::bad_config(
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
    default: return folder_of_file(path, kind, beside);
  }
}

std::optional<UnfinishedRun> unfinished_run(const std::string& path) {
  const fs::path given = fs::path(path).lexically_normal();
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
  if (is_checkpoint_name(folder.string()) && fs::exists(folder) && is_run(parent))
    return UnfinishedRun{parent, parent + "/" + folder.filename().string(), false};
  for (const char* finished : {"model.safetensors", kAdapterWeightsFile})
    if (core::exists(path + "/" + finished)) return std::nullopt;
  if (!is_run(path)) return std::nullopt;
  const auto latest = latest_checkpoint(path);
  if (!latest) return std::nullopt;
  return UnfinishedRun{path, latest->path, true};
}

ReadModel read_unfinished(
    const UnfinishedRun& run, const Config& config, torch::Dtype dtype, std::string& which) {
  const torch::NoGradGuard no_grad;
  const nn::NoFirstValues unset;  // torch's generator is not advanced
  const auto checkpoint = load_checkpoint(run.checkpoint);
  const auto step = core::get<std::int64_t>(checkpoint.facts, "step", checkpoint.origin);
  const auto model = std::make_shared<nn::Model>(config.options, config.vocabulary);
  checkpoint.get_weights("model", *model);
  which = after_update("weights", step);
  const auto weights = model->named_weights();
  const bool kept = checkpoint.tensors.count(kKept + weights.front().first) > 0;
  if (run.best && kept) {
    const auto parts = summed(checkpoint);
    for (const auto& [name, weight] : weights) {
      const auto one = checkpoint.tensor(kKept + name);
      torch::Tensor(weight).copy_(parts > 0 ? one / static_cast<double>(parts) : one);
    }
    which = parts > 0 ? fmt::format("the mean of {} of its weights, up to step {}", parts, step)
                      : of_best("weights", checkpoint);
  }
  const auto print = fingerprint(*model);
  model->to(torch::kCPU, dtype);
  return {model, print, print, true};
}

std::optional<UnfinishedAdapter> unfinished_adapter(
    const UnfinishedRun& run, const Config& config, std::string& which) {
  const auto training = config.facts.all.find("training");
  if (training == config.facts.all.end() || !training->is_object() ||
      value_or<std::int64_t>(*training, "lora", 0, run.folder) == 0)
    return std::nullopt;
  const auto checkpoint = load_checkpoint(run.checkpoint);
  const auto base = value_or<std::string>(checkpoint.facts, "base", "", checkpoint.origin);
  if (base.empty())
    core::bad_data("{}: contains an adapter that does not name its model; let train finish the run",
        run.checkpoint);
  const auto begins = [&](const std::string& prefix) {
    const auto found = checkpoint.tensors.lower_bound(prefix);
    return found != checkpoint.tensors.end() && found->first.starts_with(prefix);
  };
  const bool best = run.best && begins(kKept);
  which = best ? of_best("terms", checkpoint)
               : after_update(
                     "terms", core::get<std::int64_t>(checkpoint.facts, "step", checkpoint.origin));
  core::Json rules = {{"r", core::get<std::int64_t>(*training, "lora", run.folder)}};
  const auto alpha = value_or<double>(*training, "lora_alpha", 0, run.folder);
  rules["lora_alpha"] = alpha > 0 ? alpha : 2 * rules["r"].get<double>();
  return UnfinishedAdapter{base,
      std::make_unique<Adapter>(
          rules, run.checkpoint + "/" + kCheckpointTensors, best ? kKept : kTerms),
      value_or<std::string>(*training, "from", "", run.folder)};
}

}  // namespace model
