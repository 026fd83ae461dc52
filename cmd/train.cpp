// train: a language model from shards of tokens, with TRIME's memories in the loss where asked for.
//
// FILE: shards of tokens (man 5 shard), several are one; `-` or none is stdin.
// With --loss clipped-mse: a memory unit that forecasts, from shards of vectors.
// -o DIR: the model (man 5 model). stdout: nothing, or with --plan what the run would take.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/units.h"
#include "nn/runtime.h"
#include "train/forecast.h"
#include "train/plan.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace {

struct Options {
  train::Recipe recipe;
  nn::ModelOptions model;
  train::KeepOptions keep;
  train::ValidationOptions validation;
  std::string from, valid, device = "auto", max_time;
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
    f("beta", beta, "clipped-mse: sharpness of the kernel");
    f("device", device, "cpu, cuda, or auto");
    f("checkpoint-every", keep.checkpoint_every,
      "updates between checkpoints; 0: every ten minutes");
    f("keep", keep.keep, "checkpoints that stay when the run is done");
    f("max-time", max_time, "save and stop with code 75 after so long (H:M:S)");
    f("plan", plan, "print what the run would take, and end");
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
  job.device = nn::device(options.device);
  return job;
}

std::string describe(const train::Watch::Progress& progress) {
  std::string text;
  if (progress.loss) text = fmt::format("loss {:.3f}", *progress.loss);
  if (progress.valid_loss) text += fmt::format(", valid {:.3f}", *progress.valid_loss);
  return text;
}

int plan_only(const Options& options, const cli::Context& context) {
  auto run = train::prepare(job_of(options, context, options.files));
  core::Output out("-");
  out.write(cli::format_report(context, train::plan(run, options.keep)));
  out.commit();
  return 0;
}

int train_forecast(const Options& options, const cli::Context& context) {
  if (options.model.arch != "mosaic")
    core::fail(core::Code::usage, "--loss clipped-mse goes with --arch mosaic");
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
  const train::RunFolder folder(context.output);
  train::ForecastJob job;
  job.recipe = options.recipe;
  job.shape.heads = options.model.shape.heads;
  job.shape.beta = static_cast<float>(options.beta);
  job.shards = folder.spool_stdin(options.files);
  job.seed = static_cast<std::uint64_t>(context.seed);
  cli::Progress progress(context, "training", "updates",
                         static_cast<std::uint64_t>(std::max<std::int64_t>(0, job.recipe.steps)));
  const bool trained = train::train_forecast(folder, job, [&](std::int64_t step, double loss) {
    progress.update(static_cast<std::uint64_t>(step), fmt::format("loss {:.4f}", loss));
  });
  folder.remove_spool();
  if (!trained) cli::note(context, folder.path() + ": finished before; nothing to do");
  return 0;
}

int train_model(const Options& options, const cli::Context& context) {
  if (options.loss == "clipped-mse" && !context.output.empty() && context.output != "-")
    return train_forecast(options, context);
  auto keep = options.keep;
  if (keep.checkpoint_every < 0 || keep.keep < 0)
    core::fail(core::Code::usage, "--{}: takes 0 or a positive number",
               keep.keep < 0 ? "keep" : "checkpoint-every");
  if (!options.max_time.empty())
    keep.deadline = std::chrono::steady_clock::now() +
                    std::chrono::milliseconds(
                        static_cast<std::int64_t>(1000 * core::parse_duration_s(options.max_time)));
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
  if (options.plan) return plan_only(options, context);
  if (context.output.empty() || context.output == "-")
    core::fail(core::Code::usage, "-o: give a folder for the model");

  const train::RunFolder folder(context.output);
  const auto shards = folder.spool_stdin(options.files);
  cli::catch_stop_signals();
  auto run = train::prepare(job_of(options, context, shards));
  cli::Progress progress(context, "training", "updates",
                         static_cast<std::uint64_t>(run.recipe.steps));
  train::Watch watch;
  watch.stop = cli::stop_requested;
  watch.note = [&](const std::string& text) { cli::note(context, folder.path() + ": " + text); };
  watch.progress = [&](const train::Watch::Progress& now) {
    progress.update(static_cast<std::uint64_t>(now.step), describe(now));
  };
  switch (train::train_in(folder, run, keep, watch)) {
    case train::Outcome::finished:
      return 0;
    case train::Outcome::was_finished:
      cli::note(context, folder.path() + ": finished before; nothing to do");
      return 0;
    case train::Outcome::stopped:
      cli::note(context, folder.path() + ": stopped, saved; the same command goes on");
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
       "  train --memory local,long --valid valid.shard.zst -o model/ train.shard.zst"},
      options, train_model);
}
