#include "train/trainer.h"

#include <sys/resource.h>

#include <exception>

#include "core/build_info.h"
#include "nn/base/cuda.h"
#include "train/log.h"
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

// Returns the settings on which all processes must agree.
core::OrderedJson agreed_settings(const Objective& objective, const KeepOptions& keep) {
  const auto& settings = objective.settings();
  core::OrderedJson agreed_settings{
      {"program", fmt::format("{} ({}, LibTorch {})", core::build::kVersion, core::build::kGit,
                      core::build::kTorch)},
      {"jobs", at::get_num_threads()}};
  for (const auto& [key, value] : settings.config["tessera"]["training"].items())
    agreed_settings[key] = value;
  agreed_settings.update({{"checkpoint_every", keep.checkpoint_every}, {"keep", keep.keep},
      {"shard", static_cast<int>(settings.sharded)}, {"valid_command", settings.validation.command},
      {"valid_better", settings.validation.better}});
  return agreed_settings;
}

class Trainer {
 public:
  Trainer(const RunFolder& folder, Objective& objective, const KeepOptions& keep,
      const Callbacks& watch, ranks::Group& group)
      : group_(group), folder_(folder), objective_(objective), settings_(objective.settings()),
        weights_(objective.weights()), keep_(keep), watch_(watch), candidates_(no_candidates()) {}

  // Makes a finished run one that has taken its first steps, from which train() goes on: from the
  // checkpoint of its last step if it was kept, else from the model. Returns whether it did; a
  // validation command may have been stopped.
  bool begin_further() {
    const std::int64_t from = recipe_.further_from;
    const auto latest = model::latest_checkpoint(folder_.path());
    const bool kept = group_.from_first(latest && latest->step == from ? 1 : 0) != 0;
    if (!kept) {
      group_.together([&] { objective_.take_model(folder_.path()); });
      step_ = from;
      // The model stays the best if no further step makes a better one.
      if (has_validation()) {
        const auto end = validate_on_first();
        if (end == kStopped) return false;
        if (end != kScored) fail_command(end);
        validated_ = step_;
      }
      save();
    }
    group_.first_does([&] {
      folder_.begin_further(settings_.config);
      return 0;
    });
    if (watch_.note)
      watch_.note(fmt::format(
          "trains on after step {} to {}, from {}; the learning rate begins its schedule again "
          "(warm-up, {}) for these {}",
          from, recipe_.steps,
          kept ? "its last checkpoint" : "the model's weights with new moments of the optimiser",
          recipe_.schedule.schedule, recipe_.steps - from));
    return true;
  }

  Outcome train() {
    resume();
    group_.first_does([&] {
      metrics_.emplace(folder_.file("metrics.jsonl"), step_);
      timings_.emplace(folder_.file("timings.jsonl"), step_);
      if (keep_.tensorboard) tensorboard_.emplace(folder_.path());
      return 0;
    });
    const bool done = loop();
    if (!done) return Outcome::stopped;
    finish();
    return Outcome::finished;
  }

 private:
  Candidates no_candidates() const {
    return {recipe_.average_checkpoints, recipe_.valid_every, recipe_.steps,
        settings_.validation.score(), settings_.validation.higher()};
  }

  // What an update is asked before it begins, by any process or by the first alone.
  enum Ask : unsigned { kStop = 1, kSave = 2 };

  void resume() {
    const auto latest = model::latest_checkpoint(folder_.path());
    const auto step = group_.from_first(latest ? latest->step : -1);
    if (step < 0) return;
    group_.together([&] {
      const auto seen = model::checkpoints(folder_.path());
      const auto* const found = core::find_by(seen, step, &model::CheckpointPath::step);
      if (found == nullptr)
        core::fail(core::Code::no_input,
            "{}: rank {} does not see the checkpoint of step {}; all ranks need the same folder",
            folder_.path(), group_.rank(), step);
      get(model::open_checkpoint(found->path));
    });
    if (watch_.note && !(step_ > 0 && step_ == recipe_.further_from))
      watch_.note(fmt::format("resumes after step {} of {}", step_, recipe_.steps));
  }

  bool loop() {
    auto saved = logged_at_ = Clock::now();
    if (!validate_if_due()) return false;
    while (step_ < recipe_.steps) {
      const bool late = keep_.deadline && Clock::now() >= *keep_.deadline;
      const bool due = group_.first() && keep_.checkpoint_every == 0 &&
                       seconds_since(saved) >= kCheckpointSeconds;
      const unsigned asked =
          group_.any((late || (watch_.stop && watch_.stop()) ? kStop : 0U) | (due ? kSave : 0U));
      if (asked != 0) save();
      if ((asked & kStop) != 0) return false;
      if (asked != 0) saved = Clock::now();
      add(objective_.update(step_, step_));
      ++step_;
      if (candidates_.reads(step_))
        with_weights([&] {
          if (group_.first()) candidates_.passed(step_, weights_);
          return 0;
        });
      if (step_ % recipe_.log_every == 0 || step_ == recipe_.steps) log();
      if (!validate_if_due()) return false;
      if (watch_.progress) watch_.progress(progress());
      if (watch_.logged && std::exchange(told_, false)) watch_.logged(progress());
      const bool every = keep_.checkpoint_every > 0 && step_ % keep_.checkpoint_every == 0;
      if (every && (step_ < recipe_.steps || keep_.keep > 0)) save();
    }
    return true;
  }

  // Calls `work` on all processes while the first one has all weights.
  std::int64_t with_weights(const std::function<std::int64_t()>& work) {
    objective_.gather_weights();
    const auto result = work();
    objective_.release_weights();
    return result;
  }

  Callbacks::Progress progress() const {
    return {step_, recipe_.steps, scored_, loss_, valid_loss_, validated_ == step_};
  }

  void add(const Update& update) {
    window_loss_ = window_loss_.defined() ? window_loss_ + update.loss : update.loss;
    window_scored_ += update.scored;
    scored_ += update.scored;
    logged_scored_ += update.scored;
    last_ = update;
    if (update.norm.is_cpu()) return;  // descend() has checked
    const auto bad = update.norm.isfinite().logical_not().to(torch::kInt64);
    not_finite_ = not_finite_.defined() ? not_finite_ + bad : bad;
  }

  // A device counts non-finite gradients. The count is read where the host waits anyway.
  void expect_finite() {
    if (not_finite_.defined() && not_finite_.item<std::int64_t>() > 0)
      core::bad_data(
          "step {} or shortly before: the gradient is not finite; lower --lr, lengthen --warmup or "
          "set --clip",
          step_);
    not_finite_.reset();
  }

  void log() {
    expect_finite();
    // Where few targets are marked, an interval may have none.
    std::optional<double> loss;
    if (window_scored_ > 0)
      loss = window_loss_.item<double>() / static_cast<double>(window_scored_);
    if (loss && !std::isfinite(*loss))
      core::bad_data(
          "step {}: the loss is not finite; lower --lr, lengthen --warmup or set --clip", step_);
    if (loss) loss_ = loss;
    if (!group_.is_alone() && settings_.sharded != Sharded::weights)
      ranks::expect_same_digest(group_, fmt::format("step {}: the weights", step_),
          model::tensors_digest(weights_).hex());
    if (group_.first()) write_log(loss);
    logged_scored_ = window_scored_ = 0;
    window_loss_ = torch::Tensor();
  }

  void tell(const core::OrderedJson& metrics) {
    if (!metrics_) return;  // begin_further(): the lines of this step have been written
    told_ = true;
    metrics_->write(metrics);
    if (tensorboard_) tensorboard_->write(metrics);
  }

  void write_log(std::optional<double> loss) {
    core::OrderedJson line{{"step", step_}};
    if (loss) line["loss"] = rounded(*loss);
    if (loss && settings_.nats) line["perplexity"] = rounded(std::exp(*loss));
    line["lr"] = rounded(last_.lr);
    line["gradient_norm"] = rounded(last_.norm.item<double>());
    tell(line);
    const double seconds = seconds_since(logged_at_), waited_s = objective_.waited_s();
    core::OrderedJson timing{{"step", step_},
        {settings_.counted + "_per_s", rounded(static_cast<double>(logged_scored_) / seconds)},
        {"seconds", rounded(seconds)}, {"waited_for_data_s", rounded(waited_s - waited_s_)},
        {"peak_bytes", peak_bytes()}};
    if (const auto device = objective_.device(); !device.is_cpu()) {
      timing["graph"] = objective_.recorded();
      if (const auto peak = nn::device_peak_memory(device)) timing["device_peak_bytes"] = *peak;
    }
    timings_->write(timing);
    logged_at_ = Clock::now();
    waited_s_ = waited_s;
  }

  // Returns false if the command was stopped. Then, and if the command fails, a checkpoint is
  // saved, from which the command runs again.
  bool validate_if_due() {
    if (validated_ == step_ || !has_validation() ||
        (step_ % recipe_.valid_every != 0 && step_ != recipe_.steps))
      return true;
    const auto end = validate_on_first();
    if (end == kScored) {
      validated_ = step_;
      return true;
    }
    save();
    if (end == kStopped) return false;
    fail_command(end);
  }

  std::int64_t validate_on_first() {
    return with_weights([&] { return group_.first_does([&] { return validate(); }); });
  }

  bool has_validation() const {
    return settings_.has_valid || !settings_.validation.command.empty();
  }

  [[noreturn]] void fail_command(std::int64_t code) {
    if (command_failure_) std::rethrow_exception(command_failure_);
    core::fail(static_cast<core::Code>(code), "rank {} of {}: --valid-command failed on rank 0",
        group_.rank(), group_.size());
  }

  // The result of a validation, or the code of the command's error.
  enum End : std::int64_t { kScored = 0, kStopped = -1 };

  std::int64_t validate() {
    const auto& command = settings_.validation.command;
    const auto start = Clock::now();
    core::OrderedJson line{{"step", step_}};
    std::optional<double> score, temperature;
    if (settings_.has_valid) {
      const auto valid = objective_.validate();
      temperature = valid.joint_temperature;
      valid_loss_ = valid.loss;
      line["valid_loss"] = rounded(*valid_loss_);
      if (settings_.nats) line["valid_perplexity"] = rounded(std::exp(*valid_loss_));
      if (temperature) line["joint_temperature"] = *temperature;
    }
    if (!command.empty()) {
      if (!temperature) temperature = objective_.calibrated();
      try {
        score = command_score(command, objective_, temperature, folder_, watch_.stop);
      } catch (const core::Error& error) {
        command_failure_ = std::current_exception();
        return static_cast<std::int64_t>(error.code());
      }
      if (!score) return kStopped;
    }
    if (score) line["valid_score"] = rounded(*score);
    tell(line);
    candidates_.scored(step_, score ? *score : *valid_loss_, weights_, temperature);
    logged_at_ += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds_since(start)));
    return kScored;
  }

  void save() {
    expect_finite();
    model::Checkpoint checkpoint;
    objective_.put(checkpoint);
    const bool in_parts = settings_.sharded != Sharded::none && !group_.is_alone();
    std::string building;
    std::vector<std::string> digests;
    if (in_parts) {
      group_.first_does([&] {
        building = model::begin_checkpoint(folder_.path(), step_);
        return 0;
      });
      building = group_.gather(building)[0];
      std::string digest;
      group_.together([&] {
        if (!group_.first())
          digest = model::save_part(building, static_cast<std::size_t>(group_.rank()), checkpoint);
      });
      digests = group_.gather(digest);
      digests.erase(digests.begin());
    }
    group_.first_does([&] {
      auto& facts = checkpoint.facts;
      facts["step"] = step_;
      // The part of a log window before the checkpoint.
      facts["window_nats"] = window_loss_.defined() ? window_loss_.item<double>() : 0.0;
      facts["window_tokens"] = window_scored_;
      facts["validated"] = validated_;
      candidates_.put(checkpoint);
      if (metrics_) metrics_->sync(), timings_->sync();
      if (in_parts) model::end_checkpoint(building, folder_.path(), step_, checkpoint, digests);
      else model::save_checkpoint(folder_.path(), step_, checkpoint);
      folder_.prune(keep_.keep, keep_.checkpoint_every, /*done=*/false);
      return 0;
    });
  }

  void get(const model::Checkpoint& checkpoint) {
    objective_.get(checkpoint);
    const auto& facts = checkpoint.facts;
    step_ = core::get<std::int64_t>(facts, "step", checkpoint.origin);
    if (step_ > recipe_.steps)
      core::bad_data("{}: is beyond the run's last step, {}", checkpoint.origin, recipe_.steps);
    window_scored_ = core::get<std::int64_t>(facts, "window_tokens", checkpoint.origin);
    if (window_scored_ > 0)
      window_loss_ = torch::full(
          {}, core::get<double>(facts, "window_nats", checkpoint.origin), torch::kFloat64);
    validated_ = core::get<std::int64_t>(facts, "validated", checkpoint.origin);
    if (!group_.first()) return;
    candidates_ = no_candidates();
    // A mean is one of the further steps alone.
    if (recipe_.average_checkpoints == 0 || step_ == 0 || step_ != recipe_.further_from)
      candidates_.get(checkpoint, weights_);
  }

  void finish() {
    const auto save_model = [&] {
      metrics_->sync();
      timings_->sync();
      candidates_.give(weights_);
      auto temperature = candidates_.joint_temperature();
      if (!temperature) temperature = objective_.calibrated();
      objective_.save(folder_.path(), temperature);
      return 0;
    };
    with_weights([&] { return group_.first_does(save_model); });
    if (watch_.note) watch_.note(summary());
  }

  std::string summary() const {
    std::string text = fmt::format("finished: {} steps, {} in this process", recipe_.steps,
        core::format_duration(seconds_since(started_)));
    if (loss_) text += fmt::format(", loss {:.4g}", *loss_);
    if (const auto best = candidates_.best())
      text += fmt::format("; best {} {:.4g} after step {}{}",
          settings_.validation.command.empty() ? "valid_loss" : "valid_score", best->score,
          best->step, recipe_.average_checkpoints > 0 ? "" : ", whose weights the model has");
    return text;
  }

  ranks::Group& group_;
  const RunFolder& folder_;
  Objective& objective_;
  const Objective::Settings& settings_;
  const Recipe& recipe_ = settings_.recipe;
  const NamedWeights weights_;
  KeepOptions keep_;
  const Callbacks& watch_;
  Candidates candidates_;
  std::optional<Log> metrics_, timings_;
  std::optional<TensorBoardLog> tensorboard_;
  std::int64_t step_ = 0, scored_ = 0, logged_scored_ = 0, window_scored_ = 0;
  torch::Tensor window_loss_;  // sum over the log's window, float64 scalar
  torch::Tensor not_finite_;   // steps with a non-finite gradient since the last check, int64
  Update last_;
  bool told_ = false;  // metrics of this step were written
  std::optional<double> loss_, valid_loss_;
  std::int64_t validated_ = 0;  // the last validated step
  Clock::time_point logged_at_, started_ = Clock::now();
  double waited_s_ = 0;
  std::exception_ptr command_failure_;
};

}  // namespace

void KeepOptions::fields(core::FieldList& f) {
  f("checkpoint-every", checkpoint_every, "steps between checkpoints; auto: every ten minutes")
      .auto_or(1, 1e12);
  f("keep", keep, "checkpoints kept after the run").between(0, 1e12).needs("checkpoint-every");
  f("tensorboard", tensorboard, "also write the metrics as TensorBoard events");
  f("max-time", max_time, "time limit (H:M:S): save a checkpoint and exit with 75");
}

void KeepOptions::start_clock() {
  if (max_time.empty()) return;
  try {
    const double seconds = core::parse_duration_s(max_time);
    deadline = Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
  } catch (const core::Error& error) { core::fail(error.code(), "--max-time: {}", error.what()); }
}

std::string Callbacks::Progress::summary() const {
  std::string text;
  if (loss) text = fmt::format("loss {:.4g}", *loss);
  if (valid_loss) text += fmt::format("{}valid {:.4g}", loss ? ", " : "", *valid_loss);
  return text;
}

Outcome train_in(const RunFolder& folder, Objective& objective, const KeepOptions& keep,
    const Callbacks& watch, const std::shared_ptr<ranks::Group>& group) {
  if (!group->is_alone()) ranks::expect_agreement(*group, agreed_settings(objective, keep));
  enum State : std::int64_t { kUnfinished, kFinished, kFurther };
  const auto state = group->first_does([&]() -> std::int64_t {
    const bool further = folder.expect_configuration(
        objective.settings().config, objective.settings().tokenizer, objective.settings().files);
    folder.remove_leftovers();
    return further ? kFurther : folder.finished() ? kFinished : kUnfinished;
  });
  Outcome outcome = Outcome::was_finished;
  if (state != kFinished) {
    Trainer trainer(folder, objective, keep, watch, *group);
    outcome = state == kFurther && !trainer.begin_further() ? Outcome::stopped : trainer.train();
  }
  if (outcome != Outcome::stopped) {
    group->first_does([&] {
      folder.prune(keep.keep, keep.checkpoint_every, /*done=*/true);
      folder.remove_spool();
      return 0;
    });
  }
  return outcome;
}

}  // namespace train
