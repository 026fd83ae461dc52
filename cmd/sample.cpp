// sample: continues prompts, or translates sources, with a model and its memories.
//
// FILE: prompts, one per line, or JSON lines; `-` or none is stdin. -m: a model's folder. stdout:
// the continuations as they are generated, or JSON lines.

#include <signal.h>
#include <unistd.h>

#include "cli/progress.h"
#include "core/temporary_file.h"
#include "infer/answers/answerer.h"
#include "infer/generate/sample_all.h"
#include "infer/loops/make_engine.h"
#include "model/adapter.h"
#include "nn/base/runtime.h"

namespace {

struct SampleOptions {
  std::string model, adapter, tokenizer, report;
  infer::PromptOptions prompts;
  infer::OutputOptions output;
  infer::GeneratorOptions generator;
  infer::TurnOptions turns;
  infer::MemoryOptions memory;
  nn::DeviceOptions compute;
  nn::GraphOptions graph;
  void fields(core::FieldList& f) {
    auto& folder = f("model", model, "folder of the model");
    folder.short_name = 'm', folder.required = true;
    model::adapter_field(f, adapter);
    model::tokenizer_field(f, tokenizer);
    prompts.fields(f);
    output.fields(f);
    f("report", report, "file for the statistics of the run: speed, searches, spans");
    generator.fields(f);
    generator.reach.fields(f);
    generator.retrieve.fields(f);
    generator.dynamic.fields(f, /*prompts=*/true);
    turns.fields(f);
    memory.fields(f);
    f("memory-weights-follow", memory.weights_follow,
        "update learned interpolation weights on generated tokens too, not only on the prompt");
    compute.fields(f);
    graph.fields(f);
  }
};

volatile sig_atomic_t g_interrupted = 0;
extern "C" void on_interrupt(int /*number*/) { g_interrupted = 1; }

// Whether a conversation is typed at a terminal. Each line is a turn, and Ctrl-C ends an answer
// instead of the program.
bool converses(const SampleOptions& options, const cli::Context& context) {
  return options.prompts.chat && options.prompts.file.empty() && options.prompts.prompts.empty() &&
         !context.json && options.generator.samples == 1 && ::isatty(STDIN_FILENO) != 0;
}

void converse(infer::PromptReader& prompts, infer::SampleCallbacks& watch) {
  prompts.converse([] { cli::to_stderr("> "); });
  watch.turn = [before = std::make_shared<struct sigaction>()](bool begins) {
    struct sigaction own {};
    own.sa_handler = on_interrupt;
    g_interrupted = 0;
    ::sigaction(SIGINT, begins ? &own : before.get(), begins ? before.get() : nullptr);
  };
  watch.stops = [] { return g_interrupted != 0; };
}

model::Loaded load(const SampleOptions& options, torch::Device device) {
  const auto& generator = options.generator;
  auto loaded =
      generator.dynamic.on
          ? infer::load_with_type(options.model, device, generator.weights, options.adapter)
          : infer::load_to_decode(options.model, device, generator.weights, options.adapter);
  model::give_tokenizer(loaded, options.tokenizer);
  return loaded;
}

int write_samples(SampleOptions options, const cli::Context& context) {
  options.memory.choose(context.flags);
  options.generator.weights = options.generator.dynamic.weight_type(options.generator.weights);
  if (core::same_place(options.report, context.output.empty() ? "-" : context.output))
    core::bad_usage("--report {}: is the output of the texts; give another file", options.report);
  auto settings = options.generator;
  settings.settle();
  settings.check();
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  const auto device = nn::device(options.compute.device);
  const bool retrieves = options.prompts.chat && settings.retrieve.any();
  auto prompts = options.prompts.open(
      settings, options.model, options.turns.settle(settings.retrieve, options.prompts.chat));
  settings.seed = static_cast<std::uint64_t>(context.seed);
  auto loaded = load(options, device);
  if (retrieves)
    *options.turns.model = {options.turns.evidence > 0 ? infer::word_vectors(loaded) : nullptr,
        infer::question_gains(loaded, options.compute, options.generator.weights)};
  infer::Generator generator(
      std::move(loaded), settings, options.memory, device, options.graph.on());
  if (generator.tokenizer().kind() == text::TokenizerKind::bytes) prompts.take_any_bytes();

  core::Output out(context.output);
  std::optional<core::Output> report;
  if (!options.report.empty()) report.emplace(options.report);
  const bool to_stdout = context.output.empty() || context.output == "-";
  auto form = options.output;
  form.json = context.json;
  infer::SampleOutput output(out, form, settings.samples, [&] {
    if (to_stdout) out.flush();
  });
  cli::Context on_terminal = context;
  on_terminal.quiet |= to_stdout && ::isatty(STDOUT_FILENO);
  cli::Progress progress(on_terminal, "sample", "tokens");
  infer::SampleCallbacks watch;
  bool headed = false;
  watch.finished = [&](const infer::Sample& sample) {
    if (context.json || !settings.cite) return;
    if (!std::exchange(headed, true)) cli::to_stderr(infer::citation_heading());
    cli::to_stderr(infer::citation_lines(sample.prompt, sample.sample, sample.cited) +
                   infer::span_lines(sample.prompt, sample.sample, sample.spans));
  };
  watch.warn = cli::noter(context);
  watch.progress = progress.counter();
  if (converses(options, context)) converse(prompts, watch);
  if (context.verbose > 0) watch.checked = cli::noter(context);
  const auto totals = infer::sample_all(generator, prompts, output, watch);
  out.commit();
  if (report) {
    report->write(cli::format_report(context, totals.figures()));
    report->commit();
  }
  const auto from = totals.from_memories();
  if (!from.empty() && (context.json || !settings.cite)) cli::note(context, from);
  if (context.verbose > 0) cli::note(context, totals.summary());
  return 0;
}

}  // namespace

int sample_main(int argc, char** argv) {
  SampleOptions options;
  return cli::run(argc, argv,
      {"sample",
          "Generate continuations of prompts, or translations, with a model and its memories.",
          "  sample -m model --prompt 'Once upon a time' --top-p 0.9\n"
          "  sample -m model prompts.txt --beam 4 --json | jq .text\n"
          "  sample -m instruct --chat --prompt 'What is a shard?'\n"
          "  sample -m model --source --beam 4 <german >english",
          {"model", "adapter", "datastore", "ngrams", "ensemble", "retrieve", "tokenizer"},
          {"model", "prompt", "chat", "system", "max-tokens", "temperature", "top-k", "top-p",
              "beam", "samples", "stop", "special", "datastore", "cache", "ngrams", "retrieve",
              "cite", "dtype", "json", "seed", "jobs", "output"}},
      options, write_samples);
}
