#pragma once
// Everything that defines a training run beside the model: flags of train, kept in the model's
// config.json.

#include <cstdint>
#include <string>
#include <vector>

#include "core/options.h"

namespace train {

/// How the data become micro-batches. See batches.h for what each order means.
struct BatchOptions {
  /// auto: order if there is an order shard, runs for long, else shuffled.
  std::string batches = "auto";
  std::int64_t segment = 512;          ///< tokens a segment
  double segment_deviation = 0;        ///< columns: of the segments' lengths; 0: all are equal
  std::int64_t batch = 8;              ///< segments a micro-batch (columns: rows)
  std::int64_t batch_tokens = 4096;    ///< pairs: most target tokens a micro-batch
  std::int64_t accumulate = 1;         ///< micro-batches an update, of all processes together
  std::int64_t lanes = 1;              ///< columns: parts of a micro-batch's rows, see learner.h
  std::int64_t run_length = 0;         ///< runs: consecutive segments; 0: the whole micro-batch
  std::string order;                   ///< path of an order shard
  std::vector<std::int64_t> unscored;  ///< tokens that are read but not learned as targets
  std::string begin = "auto";          ///< what rows begin with: auto, none, or a token's text
  /// Which targets are learned: all, or those of the data's marks; auto: these where there are any.
  std::string loss_on = "auto";
  void fields(core::FieldList& f);
};

/// What the loss sees besides the vocabulary, and how sure of its targets it is.
struct ObjectiveOptions {
  std::string memory = "none";
  std::string memory_gradient = "on";
  std::int64_t memory_ranks = 1;  ///< ranks that share a micro-batch and its memory, see learner.h
  double memory_temperature = 1;
  std::int64_t memory_top_k = 0;  ///< 0: all
  /// Columns: earlier segments that stay memory, without gradient.
  std::int64_t memory_previous = 1;
  double drop_local = 0.9;     ///< ext: probability that a micro-batch hides the own segments
  double plain_warmup = 0.05;  ///< updates without memory first: a share below 1, else a number
  double label_smoothing = 0;  ///< mass of each target that all other words share
  std::string targets;         ///< path of what a teacher says of the data (build-targets)
  double targets_share = 0.5;  ///< of the divergence from it in the loss
  void fields(core::FieldList& f);
};

struct OptimiserOptions {
  std::string optimiser = "adamw";
  double lr = 0;  ///< 0: 1e-3, or 0.1 for nag; of a model that has learned less, see job.cpp
  double beta1 = 0.9, beta2 = 0.98;
  double epsilon = 1e-8;
  std::string bias_correction = "on";  ///< adamw, adam: of the moments, which begin at 0
  double momentum = 0;                 ///< nag, muon; 0 (auto): 0.99, 0.95
  double weight_decay = 0.01;
  std::string decay = "matrices";
  double clip = 1;  ///< 0: none
  void fields(core::FieldList& f);
};

/// Learning rates, see schedule.h.
struct ScheduleOptions {
  std::string schedule = "cosine";
  double warmup = 0.05;  ///< a share of the steps below 1, else a number
  double warmup_init_lr = 1e-7;
  double min_lr = 0;
  double period = 0;  ///< cosine-restarts: steps of the first period; 0: all after the warm-up
  double t_mult = 1;
  double lr_shrink = 1;
  void fields(core::FieldList& f);
};

/// Low-rank terms in the place of the weights, see lora.h.
struct LoraOptions {
  std::int64_t lora = 0;  ///< rank of the terms; 0: all weights are trained
  double lora_alpha = 0;  ///< s times the rank; 0 (auto): twice the rank
  std::vector<std::string> lora_targets = {"all-linear"};
  bool any() const { return lora > 0; }
  double alpha() const { return lora_alpha > 0 ? lora_alpha : 2 * static_cast<double>(lora); }
  void fields(core::FieldList& f);
};

/// What the bytes of the model depend on.
struct Recipe {
  BatchOptions batches;
  LoraOptions lora;
  ObjectiveOptions objective;
  OptimiserOptions optimiser;
  ScheduleOptions schedule;
  std::int64_t steps = 0;  ///< updates; 0 (auto): by epochs, or by the size of the data
  double epochs = 0;       ///< 0 (auto): by steps
  std::string precision = "auto";
  bool deterministic = false;    ///< the same bytes on the same GPU; the CPU's always are
  std::string reduce = "tree";   ///< how gradients are added: see ranks::Sum
  std::int64_t valid_every = 0;  ///< updates; 0: ten times in all
  std::int64_t log_every = 10;
  std::int64_t average_last = 0;  ///< points, valid_every updates apart; 0: no mean
  void fields(core::FieldList& f);
};

/// What takes less memory and changes no byte of the model: no part of a run's configuration, so
/// that it may go on with others.
struct ThriftOptions {
  bool recompute = false;        ///< see nn::RecomputingBlocks
  bool shard_optimiser = false;  ///< see OptimiserShares
  void fields(core::FieldList& f);
};

/// Fills in what is left to the data: `n_targets` tokens to predict, `batches_per_epoch`
/// micro-batches. Throws Error{usage} for values that cannot be.
void resolve_batches(Recipe& recipe, bool pairs = false);
void resolve_steps(Recipe& recipe, std::int64_t batches_per_epoch);

/// A share (below 1) of `steps`, or a number of steps.
std::int64_t share_of(double share_or_number, std::int64_t steps);

}  // namespace train
