// train: trains a language model on texts or shards of tokens, optionally with TRIME's memories in
// the loss.
//
// FILE: texts, or shards of tokens (man 5 shard), several as one; `-` or none is stdin. With --loss
// clipped-mse: trains a memory unit that forecasts, on shards of vectors. -o DIR: the model (man 5
// model). stdout: nothing; with --plan the resources that the run needs.

#include "cli/progress.h"
#include "forecast/forecast_objective.h"
#include "model/tokenizer_file.h"
#include "nn/base/runtime.h"
#include "text/documents/encode_shard.h"
#include "text/formats/tokenizer_json.h"
#include "text/learn/learn.h"
#include "train/plan.h"
#include "train/token_objective.h"

namespace {

struct TrainOptions {
  train::Job job;
  forecast::LossOptions loss;
  train::KeepOptions keep;
  nn::DeviceOptions compute;
  nn::GraphOptions graph;
  ranks::RankOptions ranks;
  ranks::BackendOptions backend;
  std::string tokenizer;
  bool plan = false, sbatch = false;
  std::vector<std::string> files;

  void fields(core::FieldList& f) {
    f.positional("FILE", files, "texts, or shards of tokens; stdin if - or not given");
    f("tokenizer", tokenizer,
        "texts: tokenizer.json, a model's folder, or `bytes` [the tokenizer of --from, else learned]")
        .short_name = 't';
    job.fields(f);
    const auto in_run = f.group("Run");
    loss.fields(f);
    keep.fields(f);
    f("plan", plan, "print the memory and time that the run needs, and exit");
    f("sbatch", sbatch, "print --plan as options of Slurm's sbatch");
    compute.fields(f);
    graph.fields(f);
    ranks.fields(f);
    backend.fields(f);
  }
};

// What the options train, on these shards; `device`: of this rank, by default as the options say.
std::unique_ptr<train::Objective> objective_of(const TrainOptions& options,
    const cli::Context& context, std::vector<std::string> shards,
    const std::shared_ptr<ranks::Group>& group = ranks::Group::alone(),
    std::optional<torch::Device> device = std::nullopt) {
  options.loss.check(options.job.model.arch);
  train::Job job = options.job;
  job.asked = core::chosen_to_json(core::list_fields(job.model), context.given);
  job.shards = std::move(shards);
  job.seed = static_cast<std::uint64_t>(context.seed);
  if (!options.plan && !options.sbatch) job.folder = context.output;
  if (options.loss.of_vectors()) {
    TrainOptions asked = options, defaults;
    forecast::refuse_meaningless(core::list_fields(asked), core::list_fields(defaults));
    job.recipe.settle_reduce(/*on_devices=*/false);
    return forecast::prepare({std::move(job), options.loss.beta});
  }
  job.device = device ? *device : nn::device(options.compute.device);
  job.recipe.settle_reduce(group->connects(job.device));
  job.record = options.graph.on();
  return std::make_unique<train::TokenObjective>(train::prepare(job), group);
}

// Returns the tokenizer of the texts among the files: the requested one, else see
// train::tokenizer_for_texts().
text::TokenizerPtr tokenizer_for(const TrainOptions& options, const std::vector<std::string>& files,
    const cli::Context& context) {
  if (!options.tokenizer.empty()) return text::load_tokenizer(options.tokenizer);
  return train::tokenizer_for_texts(
      options.job.from, files, options.job.valid, [&](const auto& texts) {
        cli::Progress reading(context, "count words", "bytes", text::total_bytes(texts));
        cli::Progress learning(context, "learn", "tokens");
        return text::learn_for_training(texts, static_cast<int>(context.jobs),
            {reading.counter(), learning.counter(), cli::noter(context)});
      });
}

// Tokenizes texts among the files on the fly.
void read_texts(const TrainOptions& options, const std::vector<std::string>& files,
    const cli::Context& context) {
  text::read_texts({[&options, files, &context] { return tokenizer_for(options, files, context); },
      "the run's", static_cast<int>(context.jobs), cli::noter(context)});
}

int plan_only(const TrainOptions& options, const cli::Context& context) {
  if (options.ranks.any()) core::bad_usage("--plan: cannot be combined with --ranks");
  read_texts(options, options.files, context);
  const auto objective = objective_of(options, context, options.files);
  if (!objective->settings().note.empty()) cli::note(context, objective->settings().note);
  core::Output out("-");
  auto plan = train::plan(*objective, options.keep);
  const bool gpu = nn::device(options.compute.device).is_cuda();
  if (options.sbatch) {
    out.write(train::sbatch_line(plan, context.jobs, gpu));
  } else if (context.json) {
    out.write(cli::format_report(context, plan));
  } else {
    const auto rows = plan["per_rank"].get<std::vector<core::OrderedJson>>();
    plan.erase("per_rank");
    out.write(cli::format_report(context, plan) + "\n" + cli::format_table(context, rows));
  }
  out.commit();
  return 0;
}

// Connects the ranks for tensors of this rank's device, which it returns.
torch::Device connect(
    const TrainOptions& options, const cli::Context& context, ranks::Group& group) {
  torch::Device device = torch::kCPU;
  group.together([&] { device = nn::device(options.compute.device); });
  ranks::expect_agreement(group, {{"shard", options.job.thrift.shard}});
  const auto note = ranks::connect(group, options.backend, device);
  if (!note.empty()) cli::note(context, note);
  return device;
}

int train_model(TrainOptions options, cli::Context context) {
  options.keep.start_clock();
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  if (options.plan || options.sbatch) return plan_only(options, context);
  if (options.job.thrift.sharded() != train::Sharded::none) {
    if (!options.ranks.any()) core::bad_usage("--shard: requires --ranks");
    nn::return_memory();
  }
  if (context.output.empty() || context.output == "-")
    core::bad_usage("-o: stdout cannot hold a model; give a folder");

  const auto group = ranks::join(options.ranks, context.output);
  if (options.ranks.any()) nn::set_local_rank(group->local());
  context.quiet = context.quiet || !group->first();
  const auto run = train::open_run(context.output, options.files, *group);
  cli::catch_stop_signals();
  read_texts(options, run.shards, context);
  std::optional<torch::Device> device;
  if (options.ranks.any() && !options.loss.of_vectors()) device = connect(options, context, *group);
  std::unique_ptr<train::Objective> objective;
  group->together([&] { objective = objective_of(options, context, run.shards, group, device); });
  cli::Progress progress(
      context, "training", "steps", static_cast<std::uint64_t>(objective->settings().recipe.steps));
  const auto note = [&](const std::string& text) {
    cli::note(context, run.folder->path() + ": " + text);
  };
  if (!objective->settings().note.empty()) cli::note(context, objective->settings().note);
  train::Callbacks watch;
  watch.stop = cli::stop_requested;
  watch.note = note;
  watch.progress = [&](const train::Callbacks::Progress& now) {
    progress.update(static_cast<std::uint64_t>(now.step), now.summary());
  };
  watch.logged = [&](const train::Callbacks::Progress& now) {
    progress.line(static_cast<std::uint64_t>(now.step), now.summary(), now.validated);
  };
  const auto outcome = train::train_in(*run.folder, *objective, options.keep, watch, group);
  if (outcome == train::Outcome::was_finished) note("already finished; nothing to do");
  if (outcome != train::Outcome::stopped) return 0;
  note("stopped, checkpoint saved; rerun to resume");
  return static_cast<int>(core::Code::stopped);
}

}  // namespace

int train_main(int argc, char** argv) {
  TrainOptions options;
  return cli::run(argc, argv,
      {"train",
          "Train a language model on texts or shards of tokens, optionally with memories in the loss.",
          "  train -o model book.txt\n"
          "  train --memory local,long --valid valid.shard.zst -o model/ train.shard.zst",
          {"valid", "order"},
          {"output", "valid", "steps", "epochs", "from", "tokenizer", "arch", "layers", "d-model",
              "heads", "segment", "batch", "lr", "memory", "max-time", "plan", "device", "jobs",
              "seed", "quiet"},
          "folder of the model [required]"},
      options, train_model);
}
