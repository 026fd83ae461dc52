#pragma once
// Training objective of a language model.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranks/group.h"
#include "train/job.h"
#include "train/learner.h"
#include "train/objective.h"
#include "train/prefetch.h"

namespace train {

class TokenObjective : public Objective {
 public:
  /// `group`: processes that share each step; all create an equal objective.
  explicit TokenObjective(Run run, std::shared_ptr<ranks::Group> group = ranks::Group::alone());
  Update update(std::int64_t step, std::int64_t data) override;
  double waited_s() const override { return prefetch_ ? prefetch_->waited_s() : 0; }
  torch::Device device() const override { return learner_.device(); }
  bool recorded() const override { return learner_.recorded(); }
  NamedWeights weights() const override {
    return run_.lora ? run_.lora->weights() : run_.model->named_weights();
  }
  std::vector<std::vector<torch::Tensor>> block_weights() const override;
  void gather_weights() override { learner_.gather_weights(); }
  void release_weights() override { learner_.release_weights(); }
  Valid validate() override;
  std::optional<double> calibrated() override;
  void put(model::Checkpoint& checkpoint) const override;
  void take_model(const std::string& folder) override;
  void get(const model::Checkpoint& checkpoint) override { learner_.get(checkpoint); }
  void save(const std::string& folder, std::optional<double> joint_temperature) const override;

 private:
  Run run_;
  Learner learner_;
  std::vector<MicroBatch> calibration_;  // empty if validation does not need it
  std::optional<Prefetch> prefetch_;     // created at the first step
};

}  // namespace train
