#include "train/train_options.h"

#include "model/model_config.h"
#include "nn/base/memory_rule.h"

namespace train {

void BatchOptions::fields(core::FieldList& f) {
  const auto in_batches = f.group("Batches");
  f("segment", segment, "tokens per segment; auto: 512, or that of --order").auto_or(1, 16e6);
  f("segment-deviation", segment_deviation,
      "streams: standard deviation of the segment length in tokens; one segment in twenty has "
      "half the length; 0: equal lengths")
      .between(0, 16e6);
  f("batch", batch,
      "segments per micro-batch; the training memory is the micro-batch; streams: number of streams")
      .between(1, 16e6);
  f("batch-tokens", batch_tokens, "pairs: maximum target tokens per micro-batch, including padding")
      .between(1, 1e9);
  f("accumulate", accumulate,
      "gradient accumulation: micro-batches per step over all ranks; each has its own memory")
      .between(1, 1e6);
  f("batch-shards", batch_shards,
      "streams: shards of a micro-batch, each with its own memory, distributed over the ranks")
      .between(1, 1e6);
  f("batches", batches,
      "composition of the batches; auto: order with --order, runs with --memory long, else shuffled",
      {"auto", "shuffled", "sequential", "runs", "streams", "documents", "order", "pairs"});
  f("run-length", run_length, "runs: consecutive segments per run; auto: the whole micro-batch")
      .auto_or(1, 16e6);
  f("order", order, "order of the segments, from bm25-pack");
  f("ignore-index", ignored_targets, "token ids that are ignored as targets (ignore_index)")
      .between(0, 4e9);
  f("loss-on", loss_on,
      "targets in the loss: marked: those marked by tokenize --loss-on; all; auto: marked if "
      "there are marks, else all",
      {"auto", "marked", "all"});
  f("bos", begin,
      "BOS token of rows that start a stream, in place of their first token: none, or a token; "
      "auto: by the tokenizer's template");
}

void ObjectiveOptions::fields(core::FieldList& f) {
  const auto in_training_memory = f.group("Training memory");
  f("memory", memory, "none, or local, long and ext joined by commas");
  f("memory-gradient", memory_gradient,
      "backpropagate into memory keys: on; own: only from this rank's loss; off",
      {"on", "own", "off"});
  f("memory-ranks", memory_ranks, "ranks that share a micro-batch and its memory").between(1, 1024);
  f("memory-temperature", memory_temperature, "temperature of the memory's scores")
      .between(model::kLeastTemperature, 1e6);
  f("memory-top-k", memory_top_k, "use only the best N entries per token; none: all")
      .none_or(1, 1e9);
  f("memory-previous", memory_previous,
      "streams with long: earlier segments kept as memory, without gradient")
      .between(0, 1e6);
  f("drop-local", drop_local, "ext: probability per micro-batch of hiding local memory")
      .between(0, 1);
  f("plain-warmup", plain_warmup,
      "initial steps without memory: a fraction if below 1, else a number")
      .between(0, 1e12);
  f("label-smoothing", label_smoothing, "label smoothing; without memory only").fraction();
  f("targets", targets, "target distributions of a teacher (build-targets); without memory only");
  f("targets-weight", targets_weight,
      "with --targets: weight of the divergence from the teacher in the loss")
      .between(0, 1);
}

void OptimiserOptions::fields(core::FieldList& f) {
  const auto in_optimiser = f.group("Optimiser");
  f("optimiser", optimiser,
      "muon: for the matrices of layers, with adamw for the rest; adam and nag: as in fairseq",
      {"adamw", "muon", "radam", "adam", "nag"});
  f("lr", lr,
      "peak learning rate; auto: 1e-3 (nag: 0.1), with --from 2e-5 (nag: 2e-3), with --lora 2e-4, "
      "with --only-memory-rows 0.1")
      .auto_or_above(0, 1000);
  f("beta1", beta1, "adam, adamw, radam, muon: decay of the first moment").fraction();
  f("beta2", beta2, "adam, adamw, radam, muon: decay of the second moment").fraction();
  f("epsilon", epsilon, "adam, adamw, radam, muon: epsilon of the denominator").above(0, 1);
  f("bias-correction", bias_correction,
      "adam, adamw: correct the bias of the moments towards 0; without it, the first steps are longer");
  f("momentum", momentum, "nag, muon: momentum; auto: 0.99 of nag, 0.95 of muon")
      .above(0)
      .below(1)
      .or_auto();
  f("weight-decay", weight_decay, "decoupled weight decay, multiplied by the learning rate")
      .between(0, 1000);
  f("decay", decay,
      "parameters with weight decay: matrices: tensors of at least two dimensions; all",
      {"matrices", "all"});
  f("clip", clip, "gradient clipping: maximum norm").none_or_above(0, 1e12);
}

void ScheduleOptions::fields(core::FieldList& f) {
  const auto in_schedule = f.group("Schedule");
  f("schedule", schedule, "learning rate schedule after the warmup",
      {"cosine", "cosine-restarts", "inverse-sqrt", "linear", "constant"});
  f("warmup", warmup, "steps of linear warmup: a fraction if below 1, else a number")
      .between(0, 1e12);
  f("warmup-init-lr", warmup_init_lr, "learning rate of the first warmup step").between(0, 1000);
  f("min-lr", min_lr, "final learning rate of cosine and linear").between(0, 1000);
  f("period", period, "cosine-restarts: steps of the first period; auto: all steps")
      .auto_or(1, 1e12);
  f("t-mult", t_mult, "cosine-restarts: factor of the length from period to period")
      .between(1, 1000);
  f("lr-shrink", lr_shrink, "cosine-restarts: factor of the learning rate from period to period")
      .above(0, 1);
}

void LoraOptions::fields(core::FieldList& f) {
  const auto in_lora = f.group("Low-rank adapter");
  f("lora", lora,
      "with --from: train a LoRA adapter of this rank and save it in peft's format; none: "
      "train all weights")
      .none_or(1, 65536);
  f("lora-alpha", lora_alpha,
      "LoRA alpha: the update is scaled by alpha / rank; auto: twice the rank")
      .auto_or_above(0, 1e6);
  f("lora-targets", lora_targets,
      "adapted modules, by their names in transformers (q_proj), or all-linear; may be repeated");
}

void Recipe::fields(core::FieldList& f) {
  const auto in_length = f.group("Length");
  f("steps", steps,
      "optimiser steps; auto: by --epochs, else by the size of the data; with --from, one epoch")
      .auto_or(1, 1e12);
  f("epochs", epochs, "passes over the data; auto: by --steps").auto_or_above(0, 1e9);
  batches.fields(f);
  objective.fields(f);
  optimiser.fields(f);
  schedule.fields(f);
  lora.fields(f);
  {
    const auto in_rows = f.group("Memory layers");
    f("only-memory-rows", only_memory_rows,
        "with --from and --background: train only the N rows of each memory layer's tables that a "
        "micro-batch reads most, relative to the background; none: train all weights")
        .none_or(1, 1e12);
  }
  const auto in_run = f.group("Run");
  f("precision", precision,
      "data type of matrix products; auto: float32 on the CPU, bfloat16 on a GPU",
      {"auto", "float32", "bfloat16"});
  f("deterministic", deterministic, "GPU: bitwise reproducible results, at some cost in speed");
  f("reduce", reduce,
      "order in which gradients are added: tree: the same result for 1, 2, 4, ... ranks; "
      "fast: as the communication library does; auto: fast with NCCL and without "
      "--deterministic, else tree",
      {"auto", "tree", "fast"});
  f("valid-every", valid_every, "steps between validations; auto: ten validations in all")
      .auto_or(1, 1e12);
  f("log-every", log_every, "steps between lines of metrics.jsonl").between(1, 1e12);
  f("average-checkpoints", average_checkpoints,
      "checkpoint averaging: average the weights of the last N validations; none: keep the best, "
      "or the last")
      .none_or(1, 1e6);
}

void Recipe::settle_reduce(bool on_devices) {
  if (reduce == "auto") reduce = on_devices && !deterministic ? "fast" : "tree";
}

void ThriftOptions::fields(core::FieldList& f) {
  f("recompute", recompute,
      "activation checkpointing: recompute the blocks of a transformer in the backward pass; "
      "less memory, more time, same model");
  f("shard", shard,
      "with --ranks: shard over the ranks the optimiser state (ZeRO-1), also the gradients (ZeRO-2), "
      "also the weights (ZeRO-3); same model",
      {"none", "optimiser", "gradients", "weights"});
}

Sharded ThriftOptions::sharded() const {
  return shard == "weights"     ? Sharded::weights
         : shard == "gradients" ? Sharded::gradients
         : shard == "optimiser" ? Sharded::optimiser
                                : Sharded::none;
}

namespace {

void expect(bool holds, const char* flag, const char* what) {
  if (!holds) core::bad_usage("--{}: {}", flag, what);
}

// Checks options that depend on each other.
void check(const Recipe& recipe) {
  const auto& batches = recipe.batches;
  const auto& objective = recipe.objective;
  const auto segment = batches.segment > 0 ? batches.segment : kSegment;
  expect(batches.segment_deviation <= static_cast<double>(segment), "segment-deviation",
      "takes 0 to --segment");
  expect(recipe.steps == 0 || recipe.epochs == 0, "epochs", "cannot be combined with --steps");
  const bool remembers = nn::MemoryRule::parse(objective.memory).any();
  expect(objective.memory_ranks == 1 || remembers, "memory-ranks", "requires --memory");
  expect(objective.label_smoothing == 0 || !remembers, "label-smoothing",
      "cannot be combined with --memory");
  expect(!recipe.lora.any() || !remembers, "lora", "cannot be combined with --memory");
  expect(!recipe.lora.any() || recipe.average_checkpoints == 0, "lora",
      "cannot be combined with --average-checkpoints");
  expect(recipe.only_memory_rows == 0 || !recipe.lora.any(), "only-memory-rows",
      "cannot be combined with --lora");
  expect(objective.targets.empty() || (objective.label_smoothing == 0 && !remembers), "targets",
      "cannot be combined with --memory or --label-smoothing");
}

}  // namespace

void resolve_batches(Recipe& recipe, bool pairs) {
  check(recipe);
  auto& batches = recipe.batches;
  const auto rule = nn::MemoryRule::parse(recipe.objective.memory);
  if (batches.batches == "auto")
    batches.batches = !batches.order.empty() ? "order"
                      : pairs                ? "pairs"
                      : rule.far             ? "runs"
                                             : "shuffled";
  expect(
      pairs ? batches.batches == "pairs" || batches.batches == "order" : batches.batches != "pairs",
      "batches",
      pairs ? "must be pairs or order for a shard of pairs" : "pairs requires a shard of pairs");
  expect((batches.batches == "order") == !batches.order.empty(), "order",
      "requires --batches order, which requires it");
  expect(batches.segment_deviation == 0 || batches.batches == "streams", "segment-deviation",
      "requires --batches streams");
  if (batches.batches == "runs") {
    if (batches.run_length == 0) batches.run_length = batches.batch;
    expect(batches.batch % batches.run_length == 0, "run-length", "must divide --batch");
  } else {
    expect(batches.run_length == 0, "run-length", "requires --batches runs");
  }
  expect(recipe.objective.memory_ranks == 1 || batches.batches != "streams", "memory-ranks",
      "cannot be combined with --batches streams; use --batch-shards");
  expect(
      recipe.objective.memory_ranks == 1 || pairs || recipe.objective.memory_ranks <= batches.batch,
      "memory-ranks", "must be at most --batch");
  expect(batches.batch_shards == 1 || batches.batches == "streams", "batch-shards",
      "requires --batches streams");
  expect(batches.batch % batches.batch_shards == 0, "batch-shards", "must divide --batch");
  expect(recipe.optimiser.bias_correction || recipe.optimiser.optimiser.starts_with("adam"),
      "bias-correction", "requires --optimiser adamw or adam");
  if (recipe.optimiser.lr == 0)
    recipe.optimiser.lr = recipe.optimiser.optimiser == "nag" ? 0.1 : 1e-3;
  const auto& schedule = recipe.schedule;
  expect(schedule.schedule == "constant" || schedule.schedule == "inverse-sqrt" ||
             schedule.min_lr <= recipe.optimiser.lr,
      "min-lr", fmt::format("must be at most the peak, {}", recipe.optimiser.lr).c_str());
  if (recipe.optimiser.momentum == 0)
    recipe.optimiser.momentum = recipe.optimiser.optimiser == "muon" ? 0.95 : 0.99;
}

void resolve_steps(Recipe& recipe, std::int64_t batches_per_epoch) {
  // By default a run reads the data ten times, but makes at most 2,000 and at least 100 steps.
  constexpr double kEpochs = 10, kMost = 2000, kLeast = 100;
  const double per_epoch =
      static_cast<double>(batches_per_epoch) / static_cast<double>(recipe.batches.accumulate);
  if (recipe.steps == 0) {
    const double steps = recipe.epochs > 0 ? recipe.epochs * per_epoch
                                           : std::clamp(kEpochs * per_epoch, kLeast, kMost);
    expect(steps < 1e15, "epochs", "is too large");
    recipe.steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(steps - 1e-6)));
  }
  recipe.epochs = 0;
  if (recipe.valid_every == 0) recipe.valid_every = std::max<std::int64_t>(1, recipe.steps / 10);
}

std::int64_t share_of(double share_or_number, std::int64_t steps) {
  const double number =
      share_or_number < 1 ? share_or_number * static_cast<double>(steps) : share_or_number;
  return static_cast<std::int64_t>(std::llround(std::min(number, 9e15)));
}

}  // namespace train
