#pragma once
// Options that define a training run beside the model: flags of train, stored in the model's
// config.json.

#include "core/options.h"

namespace train {

inline constexpr std::int64_t kSegment = 512;  ///< tokens in a segment by default

/// Options that form micro-batches from the data; see batches.h for the orders.
struct BatchOptions {
  /// auto: order if there is an order shard, runs for long memory, else shuffled.
  std::string batches = "auto";
  std::int64_t segment = 0;          ///< tokens in a segment; 0 (auto): the order's, or kSegment
  double segment_deviation = 0;      ///< columns: standard deviation of segment lengths; 0: equal
                                     ///< lengths
  std::int64_t batch = 8;            ///< segments in a micro-batch (columns: rows)
  std::int64_t batch_tokens = 4096;  ///< pairs: maximum target tokens in a micro-batch
  std::int64_t accumulate = 1;       ///< micro-batches in a step, over all processes
  std::int64_t batch_shards = 1;     ///< columns: number of batch shards, see learner.h
  std::int64_t run_length = 0;       ///< runs: consecutive segments; 0: the whole micro-batch
  std::string order;                 ///< path of an order shard
  std::vector<std::int64_t> ignored_targets;  ///< target tokens that are ignored in the loss
  std::string begin = "auto";                 ///< BOS token of rows: auto, none, or a token's text
  /// Learned targets: all, or those that the data mark; auto: marked ones if there are any.
  std::string loss_on = "auto";
  void fields(core::FieldList& f);
};

/// Options of the loss: its memory and its target distribution.
struct ObjectiveOptions {
  std::string memory = "none";
  std::string memory_gradient = "on";
  std::int64_t memory_ranks = 1;  ///< ranks that share a micro-batch and its memory; see learner.h
  double memory_temperature = 1;
  std::int64_t memory_top_k = 0;  ///< 0: all
  /// Columns: number of previous segments kept as memory, without gradient.
  std::int64_t memory_previous = 1;
  double drop_local = 0.9;      ///< ext: probability that a micro-batch hides the own segments
  double plain_warmup = 0.05;   ///< initial steps without memory: a fraction below 1, else a number
  double label_smoothing = 0;   ///< probability mass of each target that is spread over all other
                                ///< tokens
  std::string targets;          ///< path of a teacher's targets for the data (build-targets)
  double targets_weight = 0.5;  ///< weight of the divergence from the teacher in the loss
  void fields(core::FieldList& f);
};

struct OptimiserOptions {
  std::string optimiser = "adamw";
  double lr = 0;  ///< 0: 1e-3, or 0.1 for nag; lower when fine-tuning, see job.cpp
  double beta1 = 0.9, beta2 = 0.98;
  double epsilon = 1e-8;
  bool bias_correction = true;  ///< adamw, adam: corrects the moments' bias from their start
                                ///< at 0
  double momentum = 0;          ///< nag, muon; 0 (auto): 0.99, 0.95
  double weight_decay = 0.01;
  std::string decay = "matrices";
  double clip = 1;  ///< 0: none
  void fields(core::FieldList& f);
};

/// Options of the learning rate; see update.h.
struct ScheduleOptions {
  std::string schedule = "cosine";
  double warmup = 0.05;  ///< a fraction of the steps below 1, else a number
  double warmup_init_lr = 1e-7;
  double min_lr = 0;
  double period = 0;  ///< cosine-restarts: steps of the first period; 0: all steps after the
                      ///< warm-up
  double t_mult = 1;
  double lr_shrink = 1;
  void fields(core::FieldList& f);
};

/// Options of low-rank adaptation; see lora.h.
struct LoraOptions {
  std::int64_t lora = 0;  ///< rank of the terms; 0: trains all weights
  double lora_alpha = 0;  ///< s times the rank; 0 (auto): twice the rank
  std::vector<std::string> lora_targets = {"all-linear"};
  bool any() const { return lora > 0; }
  double alpha() const { return lora_alpha > 0 ? lora_alpha : 2 * static_cast<double>(lora); }
  void fields(core::FieldList& f);
};

/// All options that affect the bytes of the model.
struct Recipe {
  BatchOptions batches;
  LoraOptions lora;
  ObjectiveOptions objective;
  OptimiserOptions optimiser;
  ScheduleOptions schedule;
  std::int64_t only_memory_rows = 0;  ///< see memory_rows.h; 0: trains all weights
  std::int64_t steps = 0;             ///< 0 (auto): by epochs, or by the size of the data
  double epochs = 0;                  ///< 0 (auto): by steps
  /// Step after which a finished run is trained further: the schedule begins again there, and there
  /// is no plain warm-up. No option; 0: not trained further.
  std::int64_t further_from = 0;
  std::string precision = "auto";
  bool deterministic = false;    ///< bit-reproducible on a given GPU; the CPU always is
  std::string reduce = "auto";   ///< order in which gradients are summed: see ranks::Sum
  std::int64_t valid_every = 0;  ///< steps between validations; 0: ten validations in total
  std::int64_t log_every = 10;
  std::int64_t average_checkpoints =
      0;  ///< number of averaged checkpoints, valid_every steps apart; 0:
          ///< none
  void fields(core::FieldList& f);
  /// Resolves reduce: the fast order if ranks sum on their GPUs (`on_devices`) and the run need not
  /// be deterministic, else the tree.
  void settle_reduce(bool on_devices);
};

/// What each process of a run keeps a share of: the optimiser's moments; the gradients too; the
/// weights of blocks too.
enum class Sharded { none, optimiser, gradients, weights };

/// Options that save memory and do not affect the bytes of the model.
struct ThriftOptions {
  bool recompute = false;      ///< see nn::RecomputingBlocks
  std::string shard = "none";  ///< of Sharded
  Sharded sharded() const;
  void fields(core::FieldList& f);
};

/// Resolve options that depend on the data: `pairs`, `batches_per_epoch` micro-batches. Throw
/// Error{usage} for impossible values.
void resolve_batches(Recipe& recipe, bool pairs = false);
void resolve_steps(Recipe& recipe, std::int64_t batches_per_epoch);

/// Returns a fraction (below 1) of `steps`, or the number of steps.
std::int64_t share_of(double share_or_number, std::int64_t steps);

}  // namespace train
