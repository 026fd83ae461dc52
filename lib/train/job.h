#pragma once
// A training run from its options: data, order, model and configuration put together.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/carried.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"
#include "shard/dataset.h"
#include "train/batches.h"
#include "train/lora.h"
#include "train/run_folder.h"
#include "train/target_shard.h"
#include "train/train_options.h"

namespace train {

/// What says how good a model is, beside the shard to validate on. It is no part of a run's
/// configuration, so that a command that failed can be mended.
struct ValidationOptions {
  std::string command;            ///< see valid_command.h; empty: the loss decides
  std::string better = "higher";  ///< of the command's scores
  void fields(core::FieldList& f);
  bool higher() const { return !command.empty() && better == "higher"; }
  std::string score() const { return command.empty() ? "valid_loss" : better + " valid_score"; }
};

/// What the user asks for.
struct Job {
  Recipe recipe;
  nn::ModelOptions model;
  std::set<std::string> given;      ///< options that were given, not left at their default
  std::vector<std::string> shards;  ///< data; no "-": see RunFolder::spool_stdin
  std::string from;                 ///< a model folder to start from, or empty
  std::string adapter;              ///< of that model; empty: none
  std::string folder;               ///< of the run; empty: none (--plan)
  std::string valid;                ///< a shard, or empty
  ValidationOptions validation;
  std::uint64_t seed = 1;
  torch::Device device = torch::kCPU;
  bool record = true;  ///< see nn::FixedSequence
  ThriftOptions thrift;
  /// Of the model, the recipe and what is read; the others have no flags here.
  void fields(core::FieldList& f);
};

/// A job with everything opened, checked and resolved.
struct Run {
  Recipe recipe;
  ValidationOptions validation;
  std::unique_ptr<shard::Dataset> data, valid, order_shard;
  std::unique_ptr<Order> order;
  std::unique_ptr<TargetShard> targets;  ///< null: none
  TokenRules rules;
  std::shared_ptr<nn::Model> model;
  std::string tokenizer;
  model::Carried carried;      ///< of the model it started from
  std::string from;            ///< where that is
  std::shared_ptr<Lora> lora;  ///< null: the weights are trained
  std::uint64_t seed = 1;
  torch::Device device = torch::kCPU;
  bool record = true;
  ThriftOptions thrift;
  core::OrderedJson facts;   ///< for model::save: memory, segment, training
  core::OrderedJson config;  ///< config.json as it stands before the model is there
  FileNames files;           ///< of the fingerprints in it
  std::string note;          ///< of defaults that are not those of a new model; empty: none
};

/// Draws the weights from torch's generator, which nn::start() seeds. Throws what opening, reading
/// and checking throw: Error{no_input}, Error{bad_data} for what does not belong together (naming
/// both), Error{usage}, Error{bad_config}.
Run prepare(const Job& job);

}  // namespace train
