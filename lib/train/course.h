#pragma once
// What a run trains, as the loop (trainer.h) and the plan (plan.h) see it: the tokens of a language
// model (token_course.h), or anything else that learns by updates.

#include <cstdint>
#include <optional>
#include <string>

#include "core/json.h"
#include "model/checkpoint.h"
#include "train/job.h"
#include "train/train_options.h"
#include "train/update.h"

namespace train {

class Course {
 public:
  /// What is settled before the first update.
  struct Terms {
    Recipe recipe;  ///< resolved
    ValidationOptions validation;
    core::OrderedJson config;        ///< config.json as it stands before the model is there
    FileNames files{};               ///< of the fingerprints in it
    std::string note{};              ///< see Run
    std::string tokenizer{};         ///< tokenizer.json; empty: none
    std::string counted = "tokens";  ///< what the loss is a mean over
    bool nats = true;                ///< the loss is in nats: its exp is a perplexity
    bool has_valid = false;          ///< validate() may be asked for
    double scored = 0;               ///< of what is counted, in all updates together
    std::int64_t state_bytes = 0;    ///< that a stream carries after a segment; 0: nothing
    bool shard_optimiser = false;    ///< see ThriftOptions
    std::optional<double> epochs{};  ///< times through the data, if that is how they are taken
  };
  virtual ~Course() = default;
  const Terms& terms() const { return terms_; }

  /// Update `step` (0, 1, ...) on the micro-batches of update `data`. Training goes through both
  /// together and in order, from any number on; nothing is kept between updates but what put()
  /// puts.
  virtual Update update(std::int64_t step, std::int64_t data) = 0;
  /// Seconds that updates have waited for data in all.
  virtual double waited_s() const { return 0; }

  /// Where it computes, and whether work there is started as one recording (nn::FixedSequence).
  virtual torch::Device device() const { return torch::kCPU; }
  virtual bool recorded() const { return false; }

  virtual NamedWeights weights() const = 0;
  /// Of the data to validate on. Memories, where there are any, are calibrated to it.
  struct Valid {
    double loss;  ///< mean
    std::optional<double> joint_temperature{};
  };
  virtual Valid validate() = 0;
  /// What memories are calibrated to with the weights as they stand; none where there are none.
  virtual std::optional<double> calibrated() { return std::nullopt; }
  /// Weights, moments, and whatever else is carried from update to update.
  virtual void put(model::Checkpoint& checkpoint) const = 0;
  virtual void get(const model::Checkpoint& checkpoint) = 0;
  /// The model as it stands, complete when model.safetensors is there.
  virtual void save(const std::string& folder, std::optional<double> joint_temperature) const = 0;

 protected:
  explicit Course(Terms terms) : terms_(std::move(terms)) {}

 private:
  Terms terms_;
};

}  // namespace train
