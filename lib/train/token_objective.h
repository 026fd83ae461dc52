#pragma once
// Training objective of a language model.
// Reads and uploads the next micro-batch during the training on the present one.

#include "train/learner.h"
#include "train/objective.h"

namespace train {

/// Yields the share's micro-batches of steps `first`, first + 1, ...; a thread always reads one
/// ahead and uploads it to `device` on a separate stream. Not thread safe. `data`, `order` and
/// `targets` (null: none) must outlive the object, which uses the first two exclusively.
class Prefetch {
 public:
  Prefetch(const shard::Dataset& data, Order& order, std::int64_t first, MicroBatchShare share = {},
      TokenRules rules = {}, torch::Device device = torch::kCPU,
      const TargetShard* targets = nullptr);
  ~Prefetch();
  Prefetch(Prefetch&&) = delete;
  /// Returns the next micro-batch; its tensors are on the device when the caller's stream uses
  /// them. Rethrows errors of reading.
  MicroBatch next();
  /// Returns the total seconds that next() has waited.
  double waited_s() const { return waited_s_; }

 private:
  // A micro-batch and the event of its upload; no event on the CPU.
  struct Ahead {
    MicroBatch micro;
    std::optional<c10::Event> copied = std::nullopt;
  };
  void begin();  // reads micro-batch share_.at(read_)
  Ahead upload(MicroBatch micro) const;
  const shard::Dataset& data_;
  Order& order_;
  const MicroBatchShare share_;
  const TokenRules rules_;
  const TargetShard* const targets_;
  const torch::Device device_;
  std::optional<c10::Stream> beside_;  // upload stream of the device
  std::int64_t read_;                  // of the share
  std::future<Ahead> ahead_;
  double waited_s_ = 0;
};

class TokenObjective : public Objective {
 public:
  /// `group`: processes that share each step; all create an equal objective.
  explicit TokenObjective(Run run, std::shared_ptr<ranks::Group> group = ranks::Group::alone());
  Update update(std::int64_t step, std::int64_t data) override;
  double waited_s() const override { return prefetch_ ? prefetch_->waited_s() : 0; }
  torch::Device device() const override { return learner_.device(); }
  bool recorded() const override { return learner_.recorded(); }
  NamedWeights weights() const override {
    return run_.part ? run_.part->weights() : run_.model->named_weights();
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
