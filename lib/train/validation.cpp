#include "train/validation.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "infer/pair_scorer.h"
#include "infer/scorer.h"
#include "model/folder.h"
#include "nn/reads_source.h"
#include "train/valid_command.h"

namespace train {
namespace {

// As many segments back as a token sees in training.
std::string reach(const Recipe& recipe) {
  const auto& batches = recipe.batches;
  const std::int64_t segments = batches.batches == "columns" ? recipe.objective.memory_previous + 1
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

infer::Totals valid_totals(Run& run) {
  const auto& recipe = run.recipe;
  if (nn::reads_source(run.model->options.arch))
    return infer::score_pairs(*run.model, *run.valid, recipe.batches.batch_tokens, run.device);
  infer::WindowOptions windows;
  infer::MemoryOptions memory;
  if (nn::MemoryRule::parse(recipe.objective.memory).far) memory.long_reach = reach(recipe);
  memory.joint_temperature = recipe.objective.memory_temperature;
  model::TrainingFacts facts;
  facts.memory = run.facts["memory"];
  facts.segment = recipe.batches.segment;
  infer::resolve(windows, memory, *run.model, facts);
  return infer::score(*run.model, *run.valid, windows, memory, run.device);
}

std::optional<double> command_score(const Run& run, const RunFolder& folder,
                                    const std::function<bool()>& stop) {
  // A name that the next run takes for a leftover.
  const std::string path =
      std::filesystem::absolute(folder.file(fmt::format("valid.tmp.{}", ::getpid())));
  const Gone gone{path};
  model::save(path, *run.model, run.facts, run.tokenizer);
  return run_valid_command(run.validation.command, path, stop);
}

}  // namespace train
