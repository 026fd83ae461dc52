#pragma once
// Interface of a training objective for the loop (trainer.h) and the plan (plan.h): the tokens of a
// language model (token_objective.h), or other objectives.

#include "train/job.h"
#include "train/update.h"

namespace train {

class Objective {
 public:
  /// Settings fixed before the first step.
  struct Settings {
    Recipe recipe;  ///< resolved
    ValidationOptions validation;
    core::OrderedJson config;         ///< config.json before the model is complete
    FileNames files{};                ///< for the fingerprints in config
    std::string note{};               ///< see Run
    std::string tokenizer{};          ///< tokenizer.json; empty: none
    std::string counted = "tokens";   ///< unit over which the loss is averaged
    bool nats = true;                 ///< the loss is in nats: its exp is a perplexity
    bool has_valid = false;           ///< validate() may be asked for
    bool carries = false;             ///< rows of consecutive micro-batches continue one another
    double scored = 0;                ///< counted units, over all steps
    std::int64_t state_bytes = 0;     ///< that a stream carries after a segment; 0: nothing
    Sharded sharded = Sharded::none;  ///< see ThriftOptions
    std::optional<double> epochs{};   ///< times through the data, if that is how they are taken
  };
  virtual ~Objective() = default;
  const Settings& settings() const { return settings_; }

  /// Runs step `step` (0, 1, ...) on the micro-batches numbered `data`. Training increments both
  /// numbers together, from any start. Only the data that put() saves persist between steps.
  virtual Update update(std::int64_t step, std::int64_t data) = 0;
  /// Returns the total seconds that steps have waited for data.
  virtual double waited_s() const { return 0; }

  /// device(): where the objective computes. recorded(): whether its work is replayed from a
  /// recording (nn::FixedSequence).
  virtual torch::Device device() const { return torch::kCPU; }
  virtual bool recorded() const { return false; }

  virtual NamedWeights weights() const = 0;
  /// Returns weights that each block alone reads, if blocks can borrow them; else nothing.
  virtual std::vector<std::vector<torch::Tensor>> block_weights() const { return {}; }
  /// If weights are sharded, weights() have their numbers on the first process between these calls
  /// alone. Both are collective.
  virtual void gather_weights() {}
  virtual void release_weights() {}
  /// Validation result. Memories, if any, are calibrated on the validation data.
  struct Valid {
    double loss;  ///< mean
    std::optional<double> joint_temperature{};
  };
  virtual Valid validate() = 0;
  /// Returns the temperature to which the memories are calibrated with the present weights; nullopt
  /// without memories.
  virtual std::optional<double> calibrated() { return std::nullopt; }
  /// Save and restore weights, moments, and all other state carried between steps.
  virtual void put(model::Checkpoint& checkpoint) const = 0;
  virtual void get(const model::Checkpoint& checkpoint) = 0;
  /// Takes the weights of the finished model in the folder. Throws Error{usage} if the objective
  /// cannot, and the errors of reading a model.
  virtual void take_model(const std::string& folder) {
    core::bad_usage("{}: it cannot be trained further", folder);
  }
  /// Writes the present model; the folder is complete when model.safetensors exists.
  virtual void save(const std::string& folder, std::optional<double> joint_temperature) const = 0;

 protected:
  explicit Objective(Settings settings) : settings_(std::move(settings)) {}

 private:
  Settings settings_;
};

}  // namespace train
