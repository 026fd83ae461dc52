#include "train/validation.h"

#include <filesystem>
#include <string>

#include "core/temporary_file.h"
#include "infer/score/scorer.h"
#include "infer/score/tune.h"
#include "infer/windows/pairs.h"
#include "nn/base/arch_facts.h"
#include "train/calibration.h"
#include "train/valid_command.h"

namespace train {
namespace {

// Returns as many earlier segments as a token sees in training.
std::string reach(const Recipe& recipe) {
  const auto& batches = recipe.batches;
  const std::int64_t segments = batches.batches == "streams" ? recipe.objective.memory_previous + 1
                                : batches.batches == "runs"  ? batches.run_length
                                                             : batches.batch;
  return fmt::format("{}seg", segments);
}

struct Gone {
  const std::string& path;
  ~Gone() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

bool validates_memory(const Run& run) {
  const auto rule = nn::MemoryRule::parse(run.recipe.objective.memory);
  return run.valid && (rule.local || rule.far);
}

Validated validate(Run& run) {
  const auto& recipe = run.recipe;
  infer::MemoryOptions asked;
  asked.weights = "constant";
  if (nn::MemoryRule::parse(recipe.objective.memory).far) asked.long_reach = reach(recipe);
  asked.joint_temperature = recipe.objective.memory_temperature;
  model::TrainingFacts facts;
  facts.memory = run.facts["memory"];
  facts.segment = recipe.batches.segment;
  auto windows = nn::arch_facts(run.model->options.arch).reads_source
                     ? infer::pair_windows(*run.valid, *run.model, recipe.batches.batch_tokens)
                     : infer::plan_windows({}, *run.model, facts);
  windows.learned = run.rules.marks != nullptr && run.valid->header().marked;
  if (run.rules.begin >= 0) {
    windows.beginning = run.rules.begin;
    if (!windows.carried) windows.window_token = run.rules.begin;
  }
  const auto memory = infer::plan_memory(asked, windows, *run.model, facts);
  if (!validates_memory(run))
    return {infer::score(*run.model, *run.valid, windows, memory, run.device), std::nullopt};
  infer::TuneOptions grid;
  grid.points["temperature"] = calibration_points(memory.rule.temperature);
  const auto tuned = infer::tune(*run.model, *run.valid, windows, memory, grid, run.device);
  return {tuned.totals, tuned.value(tuned.best, "temperature")};
}

std::optional<double> command_score(const std::string& command, const Objective& objective,
                                    std::optional<double> joint_temperature,
                                    const RunFolder& folder, const std::function<bool()>& stop) {
  const std::string path = folder.model_for_command();
  core::make_new_folder(path);
  const Gone gone{path};
  objective.save(path, joint_temperature);
  return run_valid_command(command, path, stop);
}

}  // namespace train
