#include "train/token_objective.h"

#include <utility>
#include <vector>

#include "model/folder.h"
#include "nn/base/memory_rule.h"
#include "nn/base/recomputing.h"
#include "train/calibration.h"
#include "train/validation.h"

namespace train {
namespace {

bool learns_memory(const Run& run) {
  return nn::MemoryRule::parse(run.recipe.objective.memory).any();
}

Objective::Settings settings_of(const Run& run) {
  const double micro_batches =
      static_cast<double>(run.recipe.steps * run.recipe.batches.accumulate);
  const double epochs = micro_batches / static_cast<double>(run.order->batches_per_epoch());
  return {.recipe = run.recipe,
          .validation = run.validation,
          .config = run.config,
          .files = run.files,
          .note = run.note,
          .tokenizer = run.tokenizer,
          .has_valid = run.valid != nullptr,
          .carries = run.order->carries(),
          .scored = epochs * static_cast<double>(run.order->targets_per_epoch()),
          .state_bytes = run.data->header().kind == shard::Kind::pairs
                             ? 0
                             : run.model->state_bytes(run.recipe.batches.segment),
          .sharded = run.thrift.sharded(),
          .epochs = epochs};
}

}  // namespace

TokenObjective::TokenObjective(Run run, std::shared_ptr<ranks::Group> group)
    : Objective(settings_of(run)),
      run_(std::move(run)),
      learner_(run_.model, run_.recipe, run_.order->carries(), run_.seed, run_.device,
               std::move(group), run_.record, run_.lora, run_.thrift) {
  if (learns_memory(run_) && !validates_memory(run_)) calibration_ = calibration_batches(run_);
}

Update TokenObjective::update(std::int64_t step, std::int64_t data) {
  const Share share = learner_.share();
  if (!prefetch_)
    prefetch_.emplace(*run_.data, *run_.order, data, share, run_.rules, learner_.device(),
                      run_.targets.get());
  std::vector<MicroBatch> micro;
  for (std::int64_t i = 0; i < share.count; ++i) micro.push_back(prefetch_->next());
  return learner_.update(step, micro);
}

std::vector<std::vector<torch::Tensor>> TokenObjective::block_weights() const {
  const auto* const blocks = dynamic_cast<nn::LendingBlocks*>(run_.model->architecture.get());
  if (blocks == nullptr || run_.lora) return {};
  return blocks->block_weights();
}

Objective::Valid TokenObjective::validate() {
  const auto valid = train::validate(run_);
  return {valid.totals.loss(), valid.joint_temperature};
}

std::optional<double> TokenObjective::calibrated() {
  if (validates_memory(run_)) return validate().joint_temperature;
  if (!learns_memory(run_)) return std::nullopt;
  return calibrate(
      *run_.model, calibration_,
      [this](std::int64_t micro) { return learner_.rule(run_.recipe.steps, micro); },
      run_.recipe.objective.memory_temperature, run_.device);
}

void TokenObjective::put(model::Checkpoint& checkpoint) const {
  learner_.put(checkpoint);
  if (run_.lora) checkpoint.facts["base"] = run_.from;  // the model that its terms belong to
}

void TokenObjective::take_model(const std::string& folder) {
  learner_.take_weights(model::load(folder).model->named_weights());
}

void TokenObjective::save(const std::string& folder,
                          std::optional<double> joint_temperature) const {
  if (run_.lora) return run_.lora->save(folder, run_.from);
  core::OrderedJson facts;
  for (const auto& [key, value] : run_.facts.items()) {
    facts[key] = value;
    if (joint_temperature && key == "memory_temperature")
      facts["joint_temperature"] = *joint_temperature;
  }
  model::save(folder, *run_.model, facts, run_.tokenizer, run_.carried);
}

}  // namespace train
