#pragma once
// Sets up a training run from its options: data, order, model and configuration.
// Reads a teacher's targets (build-targets) for training.

#include "model/folder.h"
#include "train/batches.h"
#include "train/lora.h"
#include "train/run_folder.h"

namespace train {

/// A shard of targets. Thread safe.
class TargetShard {
 public:
  /// Throws Error{bad_data} with both names unless the shard at `path` has the targets of `data`.
  TargetShard(const std::string& path, const shard::Dataset& data);

  /// Returns the distributions for the rows' targets, padded to `steps` for each row. Throws
  /// Error{bad_data} for an invalid distribution over the data's vocabulary.
  nn::Teachers read(const std::vector<Row>& rows, std::int64_t steps) const;
  core::Digest fingerprint() const { return targets_.fingerprint(); }

 private:
  shard::Dataset targets_;
  std::uint64_t vocabulary_;
};

/// Model selection beside the validation loss. It is not part of a run's configuration, so that a
/// failing command can be corrected.
struct ValidationOptions {
  std::string command;            ///< see validation.h; empty: the loss selects
  std::string better = "higher";  ///< direction of the command's scores
  void fields(core::FieldList& f);
  bool higher() const { return !command.empty() && better == "higher"; }
  std::string score() const { return command.empty() ? "valid_loss" : better + " valid_score"; }
};

/// Requested settings of a run.
struct Job {
  Recipe recipe;
  nn::ModelOptions model;
  /// Those of `model` that a model to start from must have, by name (core::chosen_to_json()).
  core::OrderedJson asked = core::OrderedJson::object();
  std::vector<std::string> shards;  ///< data; no "-": see RunFolder::spool_stdin
  std::string from;                 ///< model folder to start from, or empty
  std::string adapter;              ///< adapter of that model; empty: none
  std::string folder;               ///< run folder; empty: none (--plan)
  std::string valid;                ///< validation shard, or empty
  std::string background;           ///< text or shard for --only-memory-rows, or empty
  ValidationOptions validation;
  std::uint64_t seed = 1;
  torch::Device device = torch::kCPU;
  bool record = true;  ///< see nn::FixedSequence
  ThriftOptions thrift;
  /// Lists the options of model, recipe and inputs; other members have no flags here.
  void fields(core::FieldList& f);
};

/// A job with open, checked and resolved inputs.
struct Run {
  Recipe recipe;
  ValidationOptions validation;
  std::unique_ptr<shard::Dataset> data, valid, order_shard, background;
  std::unique_ptr<Order> order;
  std::unique_ptr<TargetShard> targets;  ///< null: none
  TokenRules rules;
  std::shared_ptr<nn::Model> model;
  std::string tokenizer;
  model::Carried carried;             ///< carried contents of the starting model
  std::string from;                   ///< its folder
  std::shared_ptr<Lora> lora;         ///< null: no adapter
  std::shared_ptr<TrainedPart> part;  ///< trained instead of all weights; null: trains all
  std::uint64_t seed = 1;
  torch::Device device = torch::kCPU;
  bool record = true;
  ThriftOptions thrift;
  std::vector<std::int64_t> further;  ///< see further_from()
  core::OrderedJson facts;            ///< for model::save: memory, segment, training
  core::OrderedJson config;           ///< config.json before the model is complete
  FileNames files;                    ///< for the fingerprints in config
  std::string note;  ///< note about defaults that differ from a new model's; empty: none
};

/// Sets up the run; initial weights come from torch's generator, which nn::start() seeds. Throws
/// the errors of opening, reading and checking: Error{no_input}, Error{bad_data} for inconsistent
/// inputs (naming both), Error{usage}, Error{bad_config}.
Run prepare(const Job& job);

/// Returns the tokenizer of the texts among `files`, without --tokenizer: that of the model `from`
/// unless it is empty, else of a shard among the files, else what `learn` learns from the texts.
/// Throws Error{usage} that names `valid` if there is no text to learn from.
text::TokenizerPtr tokenizer_for_texts(const std::string& from,
    const std::vector<std::string>& files, const std::string& valid,
    const std::function<text::TokenizerPtr(const std::vector<std::string>&)>& learn);

}  // namespace train
