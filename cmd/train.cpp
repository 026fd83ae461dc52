// train: a language model from shards of tokens, with TRIME's memories in the loss where asked for.
//
// FILE: shards of tokens (man 5 shard), several are one; `-` or none is stdin.
// With --loss clipped-mse: a memory unit that forecasts, from shards of vectors.
// -o DIR: the model (man 5 model). stdout: nothing, or with --plan what the run would take.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/units.h"
#include "forecast/forecast_course.h"
#include "nn/base/runtime.h"
#include "ranks/rank_options.h"
#include "train/plan.h"
#include "train/run_folder.h"
#include "train/token_course.h"
#include "train/trainer.h"

namespace {

struct Options {
  train::Recipe recipe;
  nn::ModelOptions model;
  train::KeepOptions keep;
  train::ValidationOptions validation;
  std::string from, valid, max_time;
  nn::DeviceOptions compute;
  ranks::RankOptions ranks;
  std::string loss = "softmax";
  double beta = 50;
  bool plan = false;
  std::vector<std::string> files;

  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens; - or none is stdin");
    model.fields(f);
    recipe.fields(f);
    f("from", from, "start from the weights of a model (Tessera's, or a GPT-2 of transformers)");
    f("valid", valid, "shard to validate on; the best model is kept");
    validation.fields(f);
    f("loss", loss, "softmax: of tokens; clipped-mse: of a mosaic that forecasts vectors",
      {"softmax", "clipped-mse"});
    f("beta", beta, "clipped-mse: sharpness of the kernel").above(0).at_most(1e6);
    f("checkpoint-every", keep.checkpoint_every,
      "updates between checkpoints; 0: every ten minutes")
        .between(0, 1e12);
    f("keep", keep.keep, "checkpoints that stay when the run is done").between(0, 1e12);
    f("max-time", max_time, "save and stop with code 75 after so long (H:M:S)");
    f("plan", plan, "print what the run would take, and end");
    compute.fields(f);
    ranks.fields(f);
  }
};

train::Job job_of(const Options& options, const cli::Context& context,
                  std::vector<std::string> shards) {
  train::Job job;
  job.recipe = options.recipe;
  job.model = options.model;
  job.given = context.given;
  job.shards = std::move(shards);
  job.from = options.from;
  job.valid = options.valid;
  job.validation = options.validation;
  job.seed = static_cast<std::uint64_t>(context.seed);
  job.device = nn::device(options.compute.device);
  return job;
}

std::string describe(const train::Watch::Progress& progress) {
  std::string text;
  if (progress.loss) text = fmt::format("loss {:.4g}", *progress.loss);
  if (progress.valid_loss) text += fmt::format(", valid {:.4g}", *progress.valid_loss);
  return text;
}

std::chrono::milliseconds max_time(const Options& options) {
  try {
    const double seconds = core::parse_duration_s(options.max_time);
    return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
  } catch (const core::Error& error) {
    core::fail(error.code(), "--max-time: {}", error.what());
  }
}

std::unique_ptr<train::Course> course_of_vectors(const Options& options,
                                                 const cli::Context& context,
                                                 std::vector<std::string> shards) {
  if (options.model.arch != "mosaic")
    core::fail(core::Code::usage, "--loss clipped-mse goes with --arch mosaic");
  Options asked = options, defaults;
  forecast::refuse_meaningless(core::list_fields(asked), core::list_fields(defaults));
  forecast::Job job;
  job.recipe = options.recipe;
  job.shape.heads = options.model.shape.heads;
  job.shape.beta = static_cast<float>(options.beta);
  job.given = context.given;
  job.shards = std::move(shards);
  job.from = options.from;
  job.valid = options.valid;
  job.validation = options.validation;
  job.seed = static_cast<std::uint64_t>(context.seed);
  return forecast::prepare(std::move(job));
}

std::unique_ptr<train::Course> course_of(
    const Options& options, const cli::Context& context, std::vector<std::string> shards,
    const std::shared_ptr<ranks::Group>& group = ranks::Group::alone()) {
  if (options.loss == "clipped-mse") return course_of_vectors(options, context, std::move(shards));
  if (options.beta != Options().beta)
    core::fail(core::Code::usage, "--beta: goes with --loss clipped-mse only");
  return std::make_unique<train::TokenCourse>(
      train::prepare(job_of(options, context, std::move(shards))), group);
}

int plan_only(const Options& options, const cli::Context& context) {
  if (options.ranks.ranks != "none")
    core::fail(core::Code::usage, "--plan: is of one process; leave --ranks out");
  const auto course = course_of(options, context, options.files);
  core::Output out("-");
  out.write(cli::format_report(context, train::plan(*course, options.keep)));
  out.commit();
  return 0;
}

// A folder that the first of several processes keeps, and their data, which all must read.
std::vector<std::string> data_of(const Options& options, const cli::Context& context,
                                 ranks::Group& group, std::optional<train::RunFolder>& folder) {
  const auto& files = options.files;
  const bool piped = files.empty() || std::find(files.begin(), files.end(), "-") != files.end();
  if (!group.is_alone() && piped)
    core::fail(core::Code::usage, "FILE: several ranks cannot read one stdin; give files");
  group.first_does([&] {
    folder.emplace(context.output);
    return 0;
  });
  if (!folder) folder.emplace(context.output, train::RunFolder::Role::reads);
  return folder->spool_stdin(files);
}

int train_model(const Options& options, const cli::Context& given) {
  auto context = given;
  auto keep = options.keep;
  if (!options.max_time.empty())
    keep.deadline = std::chrono::steady_clock::now() + max_time(options);
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  if (options.plan) return plan_only(options, context);
  if (context.output.empty() || context.output == "-")
    core::fail(core::Code::usage, "-o: give a folder for the model");

  const auto group = ranks::join(options.ranks, context.output);
  context.quiet = context.quiet || !group->first();
  std::optional<train::RunFolder> folder;
  const auto shards = data_of(options, context, *group, folder);
  cli::catch_stop_signals();
  std::unique_ptr<train::Course> course;
  group->together([&] { course = course_of(options, context, shards, group); });
  cli::Progress progress(context, "training", "updates",
                         static_cast<std::uint64_t>(course->terms().recipe.steps));
  train::Watch watch;
  watch.stop = cli::stop_requested;
  watch.note = [&](const std::string& text) { cli::note(context, folder->path() + ": " + text); };
  watch.progress = [&](const train::Watch::Progress& now) {
    progress.update(static_cast<std::uint64_t>(now.step), describe(now));
  };
  switch (train::train_in(*folder, *course, keep, watch, group)) {
    case train::Outcome::finished:
      return 0;
    case train::Outcome::was_finished:
      cli::note(context, folder->path() + ": finished before; nothing to do");
      return 0;
    case train::Outcome::stopped:
      cli::note(context, folder->path() + ": stopped, saved; the same command goes on");
      return static_cast<int>(core::Code::stopped);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(
      argc, argv,
      {"train",
       "Train a language model on shards of tokens, with memories in its loss where asked for.",
       "  train -o model/ x.shard.zst\n"
       "  train --memory local,long --valid valid.shard.zst -o model/ train.shard.zst",
       {"valid", "order"}},
      options, train_model);
}
