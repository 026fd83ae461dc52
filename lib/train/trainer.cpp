#include "train/trainer.h"

#include <sys/resource.h>

#include <cmath>

#include "core/error.h"
#include "core/units.h"
#include "model/folder.h"
#include "train/candidates.h"
#include "train/prefetch.h"
#include "train/validation.h"

namespace train {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kCheckpointSeconds = 600;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t peak_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

class Trainer {
 public:
  Trainer(const RunFolder& folder, Run& run, const KeepOptions& keep, const Watch& watch)
      : folder_(folder),
        run_(run),
        keep_(keep),
        watch_(watch),
        learner_(run.model, run.recipe, run.order->carries(), run.seed, run.device),
        candidates_(run.recipe.average_last, run.recipe.valid_every, run.recipe.steps,
                    run.validation.score(), run.validation.higher()) {}

  Outcome train() {
    if (const auto latest = model::latest_checkpoint(folder_.path())) {
      get(model::load_checkpoint(latest->path));
      if (watch_.note)
        watch_.note(fmt::format("goes on after update {} of {}", step_, run_.recipe.steps));
    }
    metrics_.emplace(folder_.file("metrics.jsonl"), step_);
    timings_.emplace(folder_.file("timings.jsonl"), step_);
    const bool done = loop();
    if (!done) return Outcome::stopped;
    finish();
    return Outcome::finished;
  }

 private:
  bool loop() {
    const auto& recipe = run_.recipe;
    Prefetch prefetch(*run_.data, *run_.order, step_ * recipe.batches.accumulate,
                      recipe.batches.unscored);
    auto saved = logged_at_ = Clock::now();
    if (!validate_if_due()) return false;
    while (step_ < recipe.steps) {
      const bool late = keep_.deadline && Clock::now() >= *keep_.deadline;
      if (late || (watch_.stop && watch_.stop())) {
        save();
        return false;
      }
      std::vector<MicroBatch> micro;
      for (std::int64_t i = 0; i < recipe.batches.accumulate; ++i) micro.push_back(prefetch.next());
      add(learner_.update(step_, micro));
      candidates_.passed(++step_, *run_.model);
      if (step_ % recipe.log_every == 0 || step_ == recipe.steps) log(prefetch.waited_s());
      if (!validate_if_due()) return false;
      if (watch_.progress) watch_.progress({step_, recipe.steps, tokens_, loss_, valid_loss_});
      const bool asked = keep_.checkpoint_every > 0 && step_ % keep_.checkpoint_every == 0;
      const bool due = keep_.checkpoint_every == 0 && seconds_since(saved) >= kCheckpointSeconds;
      if ((asked && (step_ < recipe.steps || keep_.keep > 0)) || (due && step_ < recipe.steps)) {
        save();
        saved = Clock::now();
      }
    }
    return true;
  }

  void add(const Update& update) {
    nats_ = nats_.defined() ? nats_ + update.nats : update.nats;
    window_tokens_ += update.tokens;
    tokens_ += update.tokens;
    logged_tokens_ += update.tokens;
    last_ = update;
  }

  void log(double waited_s) {
    const double loss = nats_.item<double>() / static_cast<double>(window_tokens_);
    if (!std::isfinite(loss))
      core::fail(core::Code::bad_data,
                 "update {}: the loss is not finite; lower --lr, lengthen --warmup or set --clip",
                 step_);
    loss_ = loss;
    metrics_->write({{"step", step_},
                     {"loss", rounded(loss)},
                     {"perplexity", rounded(std::exp(loss))},
                     {"lr", rounded(last_.lr)},
                     {"gradient_norm", rounded(last_.norm.item<double>())}});
    const double seconds = seconds_since(logged_at_);
    timings_->write({{"step", step_},
                     {"tokens_per_s", rounded(static_cast<double>(logged_tokens_) / seconds)},
                     {"seconds", rounded(seconds)},
                     {"waited_for_data_s", rounded(waited_s - waited_s_)},
                     {"peak_bytes", peak_bytes()}});
    logged_at_ = Clock::now();
    waited_s_ = waited_s;
    logged_tokens_ = window_tokens_ = 0;
    nats_ = torch::Tensor();
  }

  // False: the command was stopped, and a checkpoint is there from which it will be run again, as
  // it is if the command failed.
  bool validate_if_due() {
    const auto& recipe = run_.recipe;
    const bool command = !run_.validation.command.empty();
    if (validated_ == step_ || (!run_.valid && !command) ||
        (step_ % recipe.valid_every != 0 && step_ != recipe.steps))
      return true;
    const auto start = Clock::now();
    core::OrderedJson line{{"step", step_}};
    std::optional<double> score;
    if (command) {
      try {
        score = command_score(run_, folder_, watch_.stop);
      } catch (...) {
        save();
        throw;
      }
      if (!score) {
        save();
        return false;
      }
    }
    if (run_.valid) {
      const auto totals = valid_totals(run_);
      valid_loss_ = totals.loss();
      line["valid_loss"] = rounded(*valid_loss_);
      line["valid_perplexity"] = rounded(totals.perplexity());
    }
    if (score) line["valid_score"] = rounded(*score);
    metrics_->write(line);
    candidates_.scored(score ? *score : *valid_loss_, *run_.model);
    validated_ = step_;
    logged_at_ += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds_since(start)));
    return true;
  }

  void save() {
    model::Checkpoint checkpoint;
    learner_.put(checkpoint);
    auto& facts = checkpoint.facts;
    facts["step"] = step_;
    // The part of a log window that lies before the checkpoint.
    facts["window_nats"] = nats_.defined() ? nats_.item<double>() : 0.0;
    facts["window_tokens"] = window_tokens_;
    facts["validated"] = validated_;
    candidates_.put(checkpoint);
    metrics_->sync();
    timings_->sync();
    model::save_checkpoint(folder_.path(), step_, checkpoint);
    folder_.prune(keep_.keep, keep_.checkpoint_every, /*done=*/false);
  }

  void get(const model::Checkpoint& checkpoint) {
    learner_.get(checkpoint);
    const auto& facts = checkpoint.facts;
    step_ = core::get<std::int64_t>(facts, "step", checkpoint.origin);
    if (step_ > run_.recipe.steps)
      core::fail(core::Code::bad_data, "{}: is behind the run's last update, {}", checkpoint.origin,
                 run_.recipe.steps);
    window_tokens_ = core::get<std::int64_t>(facts, "window_tokens", checkpoint.origin);
    if (window_tokens_ > 0)
      nats_ = torch::full({}, core::get<double>(facts, "window_nats", checkpoint.origin),
                          torch::TensorOptions().dtype(torch::kFloat64).device(run_.device));
    validated_ = core::get<std::int64_t>(facts, "validated", checkpoint.origin);
    candidates_.get(checkpoint, *run_.model);
  }

  void finish() {
    metrics_->sync();
    timings_->sync();
    candidates_.give(*run_.model);
    model::save(folder_.path(), *run_.model, run_.facts, run_.tokenizer);
  }

  const RunFolder& folder_;
  Run& run_;
  KeepOptions keep_;
  const Watch& watch_;
  Learner learner_;
  Candidates candidates_;
  std::optional<Log> metrics_, timings_;
  std::int64_t step_ = 0, tokens_ = 0, logged_tokens_ = 0, window_tokens_ = 0;
  torch::Tensor nats_;  // of the log's window, float64 scalar on the device
  Update last_;
  std::optional<double> loss_, valid_loss_;
  std::int64_t validated_ = 0;  // the last update that was
  Clock::time_point logged_at_;
  double waited_s_ = 0;
};

}  // namespace

Outcome train_in(const RunFolder& folder, Run& run, const KeepOptions& keep, const Watch& watch) {
  if (keep.keep > 0 && keep.checkpoint_every <= 0)
    core::fail(core::Code::usage, "--keep: give --checkpoint-every too");
  folder.expect_configuration(run.config);
  Outcome outcome = Outcome::was_finished;
  if (!folder.finished()) outcome = Trainer(folder, run, keep, watch).train();
  if (outcome != Outcome::stopped) {
    folder.prune(keep.keep, keep.checkpoint_every, /*done=*/true);
    folder.remove_spool();
  }
  return outcome;
}

}  // namespace train
