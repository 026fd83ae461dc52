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

bool is_run(const std::string& folder) {
  const std::string config = folder + "/config.json";
  if (!core::exists(config)) return false;
  const auto json = core::read_json(config, kConfigLimit);
  return json.is_object() && json.contains("tessera") && json["tessera"].is_object() &&
         json["tessera"].contains("training");
}

// How many weights were added up under "candidate."; 0: the best ones stand there, or none.
std::int64_t summed(const Checkpoint& checkpoint) {
  return core::get<std::int64_t>(checkpoint.facts, "summed", checkpoint.origin);
}

}  // namespace

std::optional<UnfinishedRun> unfinished_run(const std::string& path) {
  const fs::path given = fs::path(path).lexically_normal();
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  const std::string parent = folder.has_parent_path() ? folder.parent_path().string() : ".";
  if (is_checkpoint_name(folder.string()) && fs::exists(folder) && is_run(parent))
    return UnfinishedRun{parent, parent + "/" + folder.filename().string(), false};
  if (core::exists(path + "/model.safetensors") || !is_run(path)) return std::nullopt;
  const auto latest = latest_checkpoint(path);
  if (!latest) return std::nullopt;
  return UnfinishedRun{path, latest->path, true};
}

ReadModel read_unfinished(const UnfinishedRun& run, const Config& config, torch::Dtype dtype,
                          std::string& which) {
  const torch::NoGradGuard no_grad;
  const nn::NoFirstValues unset;  // torch's generator stays as it is
  const auto checkpoint = load_checkpoint(run.checkpoint);
  const auto step = core::get<std::int64_t>(checkpoint.facts, "step", checkpoint.origin);
  const auto model = std::make_shared<nn::Model>(config.options, config.vocabulary);
  checkpoint.get_weights("model", *model);
  which = fmt::format("the weights after update {}", step);
  const auto weights = model->named_weights();
  const bool kept = checkpoint.tensors.count("candidate." + weights.front().first) > 0;
  if (run.best && kept) {
    const auto parts = summed(checkpoint);
    for (const auto& [name, weight] : weights) {
      const auto& one = checkpoint.tensor("candidate." + name);
      torch::Tensor(weight).copy_(parts > 0 ? one / static_cast<double>(parts) : one);
    }
    which = parts > 0
                ? fmt::format("the mean of {} of its weights, by update {},", parts, step)
                : fmt::format(
                      "the weights of its best validation so far, {:.4g} after update {},",
                      core::get<double>(checkpoint.facts, "best_score", checkpoint.origin),
                      core::get<std::int64_t>(checkpoint.facts, "best_step", checkpoint.origin));
  }
  const auto print = fingerprint(*model);
  model->to(torch::kCPU, dtype);
  return {model, print, print};
}

}  // namespace model
