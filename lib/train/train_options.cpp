#include "train/train_options.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/test_temperature.h"
#include "nn/base/memory_rule.h"

namespace train {

void BatchOptions::fields(core::FieldList& f) {
  const auto in_batches = f.group("Batches");
  f("segment", segment, "tokens a segment").between(1, 16e6);
  f("segment-deviation", segment_deviation,
    "columns: lengths of segments vary by so many tokens, one in twenty is half; 0: all are equal")
      .between(0, 16e6);
  f("batch", batch, "segments a micro-batch, which is the whole training memory; columns: rows")
      .between(1, 16e6);
  f("batch-tokens", batch_tokens, "pairs: most tokens of targets a micro-batch, padding included")
      .between(1, 1e9);
  f("accumulate", accumulate,
    "micro-batches an update, of all ranks together; they never share memory")
      .between(1, 1e6);
  f("lanes", lanes,
    "columns: "
    "parts that a micro-batch's rows are computed in, without common memory; ranks share them")
      .between(1, 1e6);
  f("batches", batches,
    "order of the segments; auto: order if there is one, runs for long memory, else shuffled",
    {"auto", "shuffled", "kept", "runs", "columns", "documents", "order", "pairs"});
  f("run-length", run_length, "runs: consecutive segments a run; 0: the whole micro-batch")
      .between(0, 16e6);
  f("order", order, "order shard of the data's segments (bm25-pack)");
  f("unscored", unscored, "ids of tokens that are read but not learned as targets").between(0, 4e9);
  f("loss-on", loss_on,
    "targets that are learned, the others being context: marked: those that tokenize --loss-on "
    "marked; auto: these where there are any, else all",
    {"auto", "marked", "all"});
  f("begin", begin,
    "what each row that goes on from no other begins with, in the place of its first token: "
    "none, or a token; auto: what the tokenizer's template says");
}

void ObjectiveOptions::fields(core::FieldList& f) {
  const auto in_training_memory = f.group("Training memory");
  f("memory", memory, "none, or any of local,long,ext joined by commas");
  f("memory-gradient", memory_gradient,
    "gradient into the memory's keys; own: of the own rank's losses alone", {"on", "own", "off"});
  f("memory-ranks", memory_ranks, "ranks that share each micro-batch and see each other's keys")
      .between(1, 1024);
  f("memory-temperature", memory_temperature, "divides the memory's scores")
      .between(model::kLeastTemperature, 1e6);
  f("memory-top-k", memory_top_k, "only the best entries of a token; 0: all").between(0, 1e9);
  f("memory-previous", memory_previous,
    "columns with long: earlier segments that stay memory, without gradient")
      .between(0, 1e6);
  f("drop-local", drop_local, "ext: probability that a micro-batch hides each token's own segment")
      .between(0, 1);
  f("plain-warmup", plain_warmup, "first updates without memory: a share below 1, else a number")
      .between(0, 1e12);
  f("label-smoothing", label_smoothing,
    "mass of each target that all other words share; without memory")
      .at_least(0)
      .below(1);
  f("targets", targets, "what a teacher says of the data's tokens (build-targets); without memory");
  f("targets-share", targets_share, "with --targets: share of the divergence from it in the loss")
      .between(0, 1);
}

void OptimiserOptions::fields(core::FieldList& f) {
  const auto in_optimiser = f.group("Optimiser");
  f("optimiser", optimiser,
    "adamw; muon (matrices of layers), with adamw for the rest; radam; adam and nag as fairseq has "
    "them",
    {"adamw", "muon", "radam", "adam", "nag"});
  f("lr", lr,
    "highest learning rate; 0: 1e-3, or 0.1 for nag; with --from 2e-5, or 2e-3; with --lora 2e-4")
      .between(0, 1000);
  f("beta1", beta1, "adam, adamw, radam, muon: decay of the mean gradient").at_least(0).below(1);
  f("beta2", beta2, "adam, adamw, radam, muon: decay of the mean square").at_least(0).below(1);
  f("epsilon", epsilon, "adam, adamw, radam, muon: added to the root mean square")
      .above(0)
      .at_most(1);
  f("bias-correction", bias_correction,
    "adam, adamw: divide the moments by what their first value, 0, leaves of them; "
    "off: longer first steps",
    {"on", "off"});
  f("momentum", momentum, "nag, muon: momentum; auto: 0.99 of nag, 0.95 of muon")
      .above(0)
      .below(1)
      .or_auto();
  f("weight-decay", weight_decay, "decoupled weight decay, times the learning rate")
      .between(0, 1000);
  f("decay", decay, "what decays: tensors of two dimensions and more, or all", {"matrices", "all"});
  f("clip", clip, "bound of the gradient's norm; 0: none").between(0, 1e12);
}

void ScheduleOptions::fields(core::FieldList& f) {
  const auto in_schedule = f.group("Schedule");
  f("schedule", schedule, "learning rate after the warm-up",
    {"cosine", "cosine-restarts", "inverse-sqrt", "linear", "constant"});
  f("warmup", warmup, "updates of linear warm-up: a share below 1, else a number").between(0, 1e12);
  f("warmup-init-lr", warmup_init_lr, "learning rate of the first update of the warm-up")
      .between(0, 1000);
  f("min-lr", min_lr, "learning rate where a cosine ends").between(0, 1000);
  f("period", period, "cosine-restarts: updates of the first period; 0: all").between(0, 1e12);
  f("t-mult", t_mult, "cosine-restarts: each period is so many times as long as the one before")
      .between(1, 1000);
  f("lr-shrink", lr_shrink, "cosine-restarts: factor of the rates from period to period")
      .above(0)
      .at_most(1);
}

void LoraOptions::fields(core::FieldList& f) {
  const auto in_lora = f.group("Low-rank adapter");
  f("lora", lora,
    "with --from: train terms of this rank that are added to the matrices, and save them as an "
    "adapter of peft's; 0: train all weights")
      .between(0, 65536);
  f("lora-alpha", lora_alpha, "the terms are multiplied by this over the rank; 0: twice the rank")
      .between(0, 1e6);
  f("lora-targets", lora_targets,
    "which matrices, and again for each: a name as transformers has it (q_proj), or all-linear");
}

void Recipe::fields(core::FieldList& f) {
  const auto in_length = f.group("Length");
  f("steps", steps,
    "updates; auto: by --epochs, else by the size of the data; with --from one epoch")
      .between(1, 1e12)
      .or_auto();
  f("epochs", epochs, "times through the data; auto: by --steps").above(0).at_most(1e9).or_auto();
  batches.fields(f);
  objective.fields(f);
  optimiser.fields(f);
  schedule.fields(f);
  lora.fields(f);
  const auto in_run = f.group("Run");
  f("precision", precision, "of the model's products; auto: float32 on the CPU, bfloat16 on a GPU",
    {"auto", "float32", "bfloat16"});
  f("deterministic", deterministic, "on a GPU: the same bytes each time, some of it slower");
  f("reduce", reduce,
    "order in which gradients are added: tree, the same bytes for 1, 2, 4, ... ranks; fast, that of "
    "the library between ranks; auto: fast with NCCL and without --deterministic, else tree",
    {"auto", "tree", "fast"});
  f("valid-every", valid_every, "updates between validations; 0: ten in all").between(0, 1e12);
  f("log-every", log_every, "updates between lines of metrics.jsonl").between(1, 1e12);
  f("average-last", average_last,
    "the model is the mean of the weights at so many last validations; 0: the best, or the last")
      .between(0, 1e6);
}

void Recipe::settle_reduce(bool on_devices) {
  if (reduce == "auto") reduce = on_devices && !deterministic ? "fast" : "tree";
}

void ThriftOptions::fields(core::FieldList& f) {
  f("recompute", recompute,
    "keep only what each block of a transformer reads, and compute the rest again for the "
    "gradient: less memory, more time, the same model");
  f("shard-optimiser", shard_optimiser,
    "with --ranks: each rank keeps the optimiser's moments of its share of the weights and steps "
    "these; the same model");
}

namespace {

void expect(bool holds, const char* flag, const char* what) {
  if (!holds) core::fail(core::Code::usage, "--{}: {}", flag, what);
}

// Checks options that depend on each other.
void check(const Recipe& recipe) {
  const auto& batches = recipe.batches;
  const auto& objective = recipe.objective;
  expect(batches.segment_deviation <= static_cast<double>(batches.segment), "segment-deviation",
         "takes 0 to --segment");
  expect(recipe.steps == 0 || recipe.epochs == 0, "epochs", "give either --steps or --epochs");
  expect(objective.memory_ranks == 1 || nn::MemoryRule::parse(objective.memory).any(),
         "memory-ranks", "goes with --memory");
  expect(objective.label_smoothing == 0 || !nn::MemoryRule::parse(objective.memory).any(),
         "label-smoothing", "the loss with --memory is not smoothed; leave one of them out");
  const bool alone =
      objective.label_smoothing == 0 && !nn::MemoryRule::parse(objective.memory).any();
  expect(!recipe.lora.any() || !nn::MemoryRule::parse(objective.memory).any(), "lora",
         "an adapter cannot say what memory it was trained with; leave --memory out");
  expect(!recipe.lora.any() || recipe.average_last == 0, "lora",
         "a mean of terms is not the mean of what they add; leave --average-last out");
  expect(objective.targets.empty() || alone, "targets",
         "is a loss without --memory and --label-smoothing; leave them out");
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
      "batches", pairs ? "of pairs are pairs, or order" : "pairs needs a shard of pairs");
  expect((batches.batches == "order") == !batches.order.empty(), "order",
         "goes with --batches order, and only with it");
  expect(batches.segment_deviation == 0 || batches.batches == "columns", "segment-deviation",
         "goes with --batches columns only");
  if (batches.batches == "runs") {
    if (batches.run_length == 0) batches.run_length = batches.batch;
    expect(batches.batch % batches.run_length == 0, "run-length", "must divide --batch");
  } else {
    expect(batches.run_length == 0, "run-length", "goes with --batches runs only");
  }
  expect(recipe.objective.memory_ranks == 1 || batches.batches != "columns", "memory-ranks",
         "columns share their rows by --lanes");
  expect(
      recipe.objective.memory_ranks == 1 || pairs || recipe.objective.memory_ranks <= batches.batch,
      "memory-ranks", "must be at most --batch");
  expect(batches.lanes == 1 || batches.batches == "columns", "lanes",
         "goes with --batches columns only");
  expect(batches.batch % batches.lanes == 0, "lanes", "must divide --batch");
  expect(recipe.optimiser.bias_correction == "on" || recipe.optimiser.optimiser.starts_with("adam"),
         "bias-correction", "goes with --optimiser adamw or adam");
  if (recipe.optimiser.lr == 0)
    recipe.optimiser.lr = recipe.optimiser.optimiser == "nag" ? 0.1 : 1e-3;
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
