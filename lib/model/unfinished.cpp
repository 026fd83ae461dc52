#include "model/unfinished.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/file_text.h"
#include "core/io.h"
#include "core/json_get.h"
#include "model/checkpoint.h"
#include "model/folder.h"
#include "nn/layers/init.h"

namespace model {
namespace {

namespace fs = std::filesystem;

// Prefixes of the names of a checkpoint's tensors (train/candidates.h, train/learner.h).
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
T value_or(const core::Json& object, const char* key, const T& otherwise,
           const std::string& origin) {
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

ReadModel read_unfinished(const UnfinishedRun& run, const Config& config, torch::Dtype dtype,
                          std::string& which) {
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
  return {model, print, print};
}

std::optional<UnfinishedAdapter> unfinished_adapter(const UnfinishedRun& run, const Config& config,
                                                    std::string& which) {
  const auto training = config.facts.all.find("training");
  if (training == config.facts.all.end() || !training->is_object() ||
      value_or<std::int64_t>(*training, "lora", 0, run.folder) == 0)
    return std::nullopt;
  const auto checkpoint = load_checkpoint(run.checkpoint);
  const auto base = value_or<std::string>(checkpoint.facts, "base", "", checkpoint.origin);
  if (base.empty())
    core::fail(core::Code::bad_data,
               "{}: contains an adapter that does not name its model; let train finish the run",
               run.checkpoint);
  const auto begins = [&](const std::string& prefix) {
    const auto found = checkpoint.tensors.lower_bound(prefix);
    return found != checkpoint.tensors.end() && found->first.starts_with(prefix);
  };
  const bool best = run.best && begins(kKept);
  which = best ? of_best("terms", checkpoint)
               : after_update("terms",
                              core::get<std::int64_t>(checkpoint.facts, "step", checkpoint.origin));
  core::Json rules = {{"r", core::get<std::int64_t>(*training, "lora", run.folder)}};
  const auto alpha = value_or<double>(*training, "lora_alpha", 0, run.folder);
  rules["lora_alpha"] = alpha > 0 ? alpha : 2 * rules["r"].get<double>();
  return UnfinishedAdapter{
      base,
      std::make_unique<Adapter>(rules, run.checkpoint + "/" + kCheckpointTensors,
                                best ? kKept : kTerms),
      value_or<std::string>(*training, "from", "", run.folder)};
}

}  // namespace model
