// eval-ppl: the perplexity of a model, with its memories, on a text.
//
// FILE: shards of tokens or of pairs (man 5 shard), several as one; `-` or none is stdin. -m: a
// model's folder. stdout: one record of figures; with --by a table after it; with --tune alone, a
// config file.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/config.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/breakdown.h"
#include "infer/pairs.h"
#include "infer/per_token.h"
#include "infer/reach.h"
#include "infer/report.h"
#include "infer/retrieval.h"
#include "infer/scorer.h"
#include "infer/stores.h"
#include "infer/tune.h"
#include "model/folder.h"
#include "nn/reads_source.h"
#include "nn/runtime.h"

namespace {

using core::Code;
using core::fail;

struct Options {
  std::vector<std::string> files;
  std::string model;
  infer::WindowOptions windows;
  infer::ReachOptions reach;
  infer::MemoryOptions memory;
  std::string tune, tune_output;
  infer::TuneOptions grid;
  std::string per_token, by = "none", counts;
  std::vector<std::int64_t> retrieval_at;
  double fail_above = 0;
  std::string device = "auto", precision = "float32";
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens or pairs; - or none is stdin");
    auto& folder = f("model", model, "folder of the model");
    folder.short_name = 'm', folder.required = true;
    windows.fields(f);
    reach.fields(f);
    memory.fields(f);
    f.group("Tuning");
    f("tune", tune, "validation shard: choose temperatures, thetas and shares on it");
    f("tune-output", tune_output, "write what was chosen to this file, for --config");
    grid.fields(f);
    f.group("Reports");
    f("per-token", per_token, "write the scores of every token to this file");
    f("by", by, "a table of the loss by parts of the text",
      {"none", "frequency", "position", "document"});
    f("counts", counts, "shard whose words --by frequency counts, the training data");
    f("retrieval-at", retrieval_at,
      "share of the tokens that are among the labels of so many nearest entries (1,8,64,1024)");
    f("fail-above", fail_above, "exit 1 if the perplexity is above this; 0: never");
    f.group("Computing");
    f("device", device, "cpu, cuda, cuda:1, or auto");
    f("precision", precision, "of the weights", {"float32", "float64", "bfloat16"});
  }
};

// What one run works with.
struct Run {
  const Options& options;
  const cli::Context& context;
  torch::Device device;
  model::Loaded loaded;

  shard::Dataset open(const std::vector<std::string>& paths) const {
    shard::Dataset data(paths);
    const bool pairs = nn::reads_source(loaded.model->options.arch);
    shard::expect_kind(data.header(), {pairs ? shard::Kind::pairs : shard::Kind::tokens},
                       data.name());
    model::check_tokenizer(loaded, data.header(), data.name());
    return data;
  }
  // The windows of these data: of pairs they are given.
  void fit(infer::WindowOptions& windows, const shard::Dataset& data) const {
    if (data.header().kind != shard::Kind::pairs) {
      windows.beginning = infer::beginning_token(data);
      return;
    }
    for (const char* flag : {"window", "stride", "restart", "carry"})
      if (context.was_given(flag))
        fail(Code::usage, "--{}: pairs of sentences have no windows", flag);
    windows = infer::pair_windows(data, *loaded.model, windows.batch_tokens);
  }
  std::string signature(const shard::Dataset& data, const infer::WindowOptions& windows,
                        const infer::MemoryOptions& memory) const {
    return infer::signature(data.fingerprint(), loaded.fingerprint, windows, memory,
                            options.precision) +
           options.reach.signature();
  }
};

// The values chosen on the validation shard; written to --tune-output, or to the output itself
// where there is nothing else to write there.
infer::MemoryOptions tune(const Run& run, infer::WindowOptions windows,
                          const infer::MemoryOptions& memory, bool alone) {
  const auto& options = run.options;
  const shard::Dataset data = run.open({options.tune});
  std::optional<core::Output>
      out;  // opened before the work: a place that cannot be written is said at once
  if (!options.tune_output.empty() || alone)
    out.emplace(options.tune_output.empty() ? run.context.output : options.tune_output);
  run.fit(windows, data);
  infer::Tuned tuned;
  {
    cli::Progress progress(run.context, "tuning", "tokens", data.size());
    tuned = infer::tune(*run.loaded.model, data, windows, memory, options.grid, run.device,
                        [&](std::uint64_t tokens) { progress.update(tokens); });
  }
  cli::note(run.context, fmt::format("tuned on {}: perplexity {:.4f}, the best of {} points ({})",
                                     data.name(), std::exp(tuned.best.loss), tuned.points.size(),
                                     run.signature(data, tuned.windows, tuned.memory)));
  if (out) {
    out->write(cli::format_config(core::list_fields(tuned.memory)));
    out->commit();
  }
  return tuned.memory;
}

std::optional<infer::Breakdown> make_breakdown(const Run& run, const shard::Dataset& data) {
  const std::string& by = run.options.by;
  if (by == "position") return infer::Breakdown::by_position(data);
  if (by == "document") return infer::Breakdown::by_document(data);
  if (by == "frequency")
    return infer::Breakdown::by_frequency(data, run.open({run.options.counts}));
  return std::nullopt;
}

int evaluate(const Run& run, infer::WindowOptions windows, const infer::MemoryOptions& memory) {
  const auto& options = run.options;
  const shard::Dataset data =
      run.open(options.files.empty() ? std::vector<std::string>{"-"} : options.files);
  run.fit(windows, data);
  auto breakdown = make_breakdown(run, data);
  std::optional<infer::PerToken> per_token;
  std::optional<infer::Retrieval> retrieval;
  if (!options.retrieval_at.empty()) retrieval.emplace(options.retrieval_at, memory.stores);
  if (!options.per_token.empty()) per_token.emplace(options.per_token, data);
  core::Output out(run.context.output);
  if (memory.stores.any() && memory.stores.opened->hold(data.fingerprint().hex()))
    cli::note(run.context, "a datastore holds this very text; its entries are left out");

  infer::Watch watch;
  if (breakdown || per_token || retrieval) {
    watch.scored = [&](const infer::Scored& scored) {
      if (breakdown) breakdown->add(scored);
      if (per_token) per_token->add(scored);
      if (retrieval) retrieval->add(scored);
    };
  }
  infer::Totals totals;
  {
    cli::Progress progress(run.context, "scoring", "tokens", data.size());
    watch.progress = [&](std::uint64_t tokens) { progress.update(tokens); };
    totals = infer::score(*run.loaded.model, data, windows, memory, run.device, watch);
  }
  core::OrderedJson report = infer::figures(totals);
  if (retrieval) report["retrieval"] = retrieval->figures();
  report["signature"] = run.signature(data, windows, memory);
  if (per_token) per_token->commit();
  out.write(cli::format_report(run.context, report));
  if (breakdown)
    out.write((run.context.json ? "" : "\n") + cli::format_table(run.context, breakdown->rows()));
  out.commit();
  const bool above = options.fail_above > 0 && totals.perplexity() > options.fail_above;
  return static_cast<int>(above ? Code::no : Code::ok);
}

int eval_ppl(const Options& options, const cli::Context& context) {
  if ((options.by == "frequency") != !options.counts.empty())
    fail(Code::usage, "--by frequency takes --counts SHARD, and only it does");
  if (!options.tune_output.empty() && options.tune.empty())
    fail(Code::usage, "--tune-output: there is no --tune");
  const auto& files = options.files;
  if (options.tune == "-" &&
      (files.empty() || std::find(files.begin(), files.end(), "-") != files.end()))
    fail(Code::usage, "--tune: two inputs are -; stdin can be read only once");
  if (!options.per_token.empty() &&
      (options.per_token == context.output || (options.per_token == "-" && context.output.empty())))
    fail(Code::usage, "--per-token {}: the figures go there too; give them another place with -o",
         options.per_token);
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
  const torch::Device device = nn::device(options.device);
  const Run run{options, context, device,
                model::load(options.model, device, nn::dtype(options.precision))};
  options.reach.apply(*run.loaded.model);
  infer::WindowOptions windows = options.windows;
  infer::MemoryOptions memory = options.memory;
  infer::resolve(windows, memory, *run.loaded.model, run.loaded.facts);
  infer::open_stores(memory, run.loaded);
  if (!options.tune.empty()) {
    const bool alone = options.files.empty();
    memory = tune(run, windows, memory, alone);
    if (alone) return 0;
  }
  return evaluate(run, windows, memory);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"eval-ppl",
                   "Scores a text with a language model and its memories: perplexity, bits per "
                   "byte, and what they depend on.",
                   "  eval-ppl -m model --tune valid.shard.zst --cache 2000 -o tuned.conf\n"
                   "  eval-ppl -m model --config tuned.conf --json test.shard.zst"},
                  options, eval_ppl);
}
