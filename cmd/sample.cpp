// sample: continues prompts, or translates sources, with a model and its memories.
//
// FILE: prompts, one a line, or JSON lines; `-` or none is stdin. -m: a model's folder.
// stdout: the continuations as they are written, or JSON lines.

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/decode_check.h"
#include "infer/generator.h"
#include "infer/generator_output.h"
#include "infer/generator_prompts.h"
#include "infer/reach.h"
#include "nn/runtime.h"

namespace {

using core::Code;
using core::fail;

constexpr std::size_t kReadAhead = 16;        // batches
constexpr std::int64_t kTranslationBeam = 4;  // where nothing says how to choose words

struct Options {
  std::string file, model, prompt, tokenizer;
  std::string format = "auto", field = "prompt";
  infer::GeneratorOptions generator;
  infer::ReachOptions reach;
  infer::MemoryOptions memory;
  bool echo = false;
  std::string separator, device = "auto";
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
    f.group("Computing");
    f("device", device, "cpu, cuda, cuda:1, or auto");
  }
};

infer::PromptReader open_prompts(const Options& options, const cli::Context& context) {
  if (context.was_given("prompt")) {
    if (!options.file.empty()) fail(Code::usage, "give --prompt or a FILE, not both");
    return infer::PromptReader({options.prompt});
  }
  return {options.file.empty() ? "-" : options.file, options.format, options.field};
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

bool draws(const cli::Context& context) {
  return context.was_given("temperature") || context.was_given("top-k") ||
         context.was_given("top-p");
}

void check(const Options& options, const cli::Context& context) {
  if (options.generator.translation.source && context.was_given("max-tokens"))
    fail(Code::usage,
         "--source bounds a translation by --max-len-a and --max-len-b; leave out "
         "--max-tokens");
  if (!options.generator.searches()) return;
  for (const char* name : {"temperature", "top-k", "top-p"})
    if (context.was_given(name)) fail(Code::usage, "--beam searches, --{} draws: give one", name);
}

// With -v: how far the fast path is from the model's own modules, on the first prompt.
void state_error(infer::Generator& generator, const Options& options, torch::Device device,
                 const cli::Context& context, const std::string& prompt) {
  infer::ModuleEngine reference(generator.model(), device);
  auto tokens = generator.encode(prompt);
  tokens.resize(std::min<std::size_t>(tokens.size(), 64));
  const auto error = infer::compare(reference, generator.engine(), tokens);
  cli::note(
      context,
      fmt::format("--weights {}: log-probabilities differ by {:.2g} (rms), {:.2g} (most) from "
                  "float32's modules over {} tokens; same best word in {:.0f} %",
                  options.generator.weights, error.rms, error.max, tokens.size(),
                  100 * error.same_best));
}

int write_samples(const Options& options, const cli::Context& context) {
  check(options, context);
  auto settings = options.generator;
  if (settings.translation.source && !context.was_given("beam") && !draws(context))
    settings.beam = std::max(kTranslationBeam, settings.samples);
  settings.check();
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
  const auto device = nn::device(options.device);
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
      fmt::print(stderr, "{}", infer::citation_lines(sample.prompt, sample.sample, sample.cited));
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
      state_error(generator, options, device, context, batch[0]);
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
                  {"sample", "Continue prompts, or translate, with a model and its memories.",
                   "  sample -m model --prompt 'Once upon a time' --top-p 0.9\n"
                   "  sample -m model prompts.txt --beam 4 --json | jq .text\n"
                   "  sample -m model --source --beam 4 <german >english"},
                  options, write_samples);
}
