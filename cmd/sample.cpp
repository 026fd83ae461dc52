// sample: continues prompts, or translates sources, with a model and its memories.
//
// FILE: prompts, one a line, or JSON lines; `-` or none is stdin. -m: a model's folder.
// stdout: the continuations as they are written, or JSON lines.

#include <unistd.h>

#include <chrono>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/generate/generator.h"
#include "infer/generate/generator_output.h"
#include "infer/generate/generator_prompts.h"
#include "infer/windows/layer_reach.h"
#include "nn/base/runtime.h"
#include "text/formats/tokenizer_json.h"

namespace {

using core::Code;
using core::fail;

constexpr std::size_t kReadAhead = 16;  // batches

struct Options {
  std::string file, model, prompt, tokenizer;
  std::string format = "auto", field = "prompt";
  infer::GeneratorOptions generator;
  infer::ReachOptions reach;
  infer::MemoryOptions memory;
  bool echo = false;
  std::string separator;
  nn::DeviceOptions compute;
  void fields(core::FieldList& f) {
    f.positional("FILE", file, "prompts; - or none is stdin");
    auto& folder = f("model", model, "folder of the model");
    folder.short_name = 'm', folder.required = true;
    f("tokenizer", tokenizer, "tokenizer.json, or `bytes`, for a model whose folder has none")
        .short_name = 't';
    f("prompt", prompt, "the prompt itself, instead of a FILE");
    f("format", format, "of FILE: lines, jsonl; auto: jsonl if its name says so",
      {"auto", "lines", "jsonl"});
    f("field", field, "jsonl: the member that is the prompt");
    f("echo", echo, "print each prompt before its continuation");
    f("separator", separator, "a line to print between texts");
    generator.fields(f);
    reach.fields(f);
    memory.fields(f);
    compute.fields(f);
  }
};

infer::PromptReader open_prompts(const Options& options, const cli::Context& context) {
  if (context.was_given("prompt")) {
    if (!options.file.empty()) fail(Code::usage, "give --prompt or a FILE, not both");
    return infer::PromptReader({options.prompt});
  }
  try {
    return {options.file.empty() ? "-" : options.file, options.format, options.field};
  } catch (const core::Error& error) {
    if (error.code() != Code::no_input) throw;
    fail(Code::no_input, "{}; a prompt itself goes behind --prompt", error.what());
  }
}

model::Loaded load(const Options& options, torch::Device device) {
  auto loaded = model::load(options.model, device);
  options.reach.apply(*loaded.model);
  if (options.tokenizer.empty()) return loaded;
  const auto given = text::load_tokenizer(options.tokenizer)->json();
  if (!loaded.tokenizer.empty() && loaded.tokenizer != given)
    fail(Code::bad_data, "{}: its tokenizer is another one than {}; leave --tokenizer out",
         options.model, options.tokenizer);
  loaded.tokenizer = given;
  return loaded;
}

int write_samples(const Options& options, const cli::Context& context) {
  auto settings = options.generator;
  settings.settle(context.given);
  settings.check();
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  const auto device = nn::device(options.compute.device);
  auto prompts = open_prompts(options, context);
  settings.seed = static_cast<std::uint64_t>(context.seed);
  infer::Generator generator(load(options, device), settings, options.memory, device);

  core::Output out(context.output);
  const bool to_stdout = context.output.empty() || context.output == "-";
  infer::SampleOutput output(out, {context.json, options.echo, options.separator}, settings.samples,
                             [&] {
                               if (to_stdout) out.flush();
                             });
  cli::Context on_terminal = context;
  on_terminal.quiet |= to_stdout && ::isatty(STDOUT_FILENO);
  cli::Progress progress(on_terminal, "sample", "tokens");
  std::uint64_t texts = 0, steps = 0;
  infer::GeneratorWatch watch;
  watch.piece = [&](auto prompt, auto sample, auto piece) { output.piece(prompt, sample, piece); };
  watch.finished = [&](const infer::Sample& sample) {
    output.finished(sample);
    if (!context.json)
      cli::to_stderr(infer::citation_lines(sample.prompt, sample.sample, sample.cited));
    ++texts;
  };
  watch.warn = [&](const std::string& text) { cli::note(context, text); };
  watch.progress = [&](std::uint64_t done) { progress.update(steps = done); };

  double seconds = 0;
  // Of sources more are read ahead, so that those of one length can go together.
  const auto most =
      static_cast<std::size_t>(settings.batch) * (settings.translation.source ? kReadAhead : 1);
  for (auto batch = prompts.next(most); !batch.empty(); batch = prompts.next(most)) {
    if (context.verbose > 0 && texts == 0 && !settings.translation.source)
      cli::note(context, generator.engine_error(batch[0]));
    const auto start = std::chrono::steady_clock::now();
    output.begin(batch);
    generator.run(batch, watch);
    output.end();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  out.commit();
  if (context.verbose > 0)
    cli::note(context, fmt::format("{} texts, {} steps of a text, {:.1f} a second, {:.4f} s", texts,
                                   steps, static_cast<double>(steps) / seconds, seconds));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"sample",
                   "Continue prompts, or translate, with a model and its memories.",
                   "  sample -m model --prompt 'Once upon a time' --top-p 0.9\n"
                   "  sample -m model prompts.txt --beam 4 --json | jq .text\n"
                   "  sample -m model --source --beam 4 <german >english",
                   {"model", "datastore", "tokenizer"}},
                  options, write_samples);
}
