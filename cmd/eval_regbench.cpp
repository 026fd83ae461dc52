// eval-regbench: measures how well a model, or n-gram counts, follow the regular language of each
// sequence.
//
// FILE: a shard of gen-regbench. --automata: the file that gen-regbench wrote with it. stdout:
// accuracy and total variation, each convention under its own name.

#include <algorithm>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/windows/windows.h"
#include "model/adapter.h"
#include "model/folder.h"
#include "nn/base/runtime.h"
#include "shard/dataset.h"
#include "task/regbench.h"

namespace {

struct EvalRegbenchOptions {
  std::vector<std::string> files;
  std::string model, adapter, automata;
  nn::DeviceOptions compute;
  std::int64_t ngram = 0, batch = 16;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of gen-regbench; stdin if - or not given");
    f("model", model, "folder of the model [required without --ngram]").short_name = 'm';
    model::adapter_field(f, adapter);
    f("ngram", ngram,
        "use counts of n-grams in the sequence so far, with back-off, instead of a model")
        .none_or(1, 12);
    f("automata", automata, "file of the sequences' automata, from gen-regbench").required = true;
    f("batch", batch, "sequences per forward pass").between(1, 1e6);
    compute.fields(f);
  }
};

using Problems = std::vector<task::RegbenchProblem>;

/// Scores problems [begin, end) with the model's predictions.
void score_with(nn::Model& model, const shard::Dataset& data, const Problems& problems,
    std::size_t begin, std::size_t end, torch::Device device, task::RegbenchScore& score) {
  std::vector<infer::Span> spans;
  for (std::size_t i = begin; i < end; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const auto inputs = static_cast<std::int64_t>(problems[i].sequence.size()) - 1;
    spans.push_back({problems[i].begin + 1, inputs, 0, number, number, true});
  }
  const auto batch = infer::batch_of(spans, data, {}, model.vocabulary).to(device);
  const auto f = model.architecture->forward(batch, nullptr).output;  // (B, T, d)
  const auto p = model.head->log_probs(f.reshape({-1, f.size(2)}))
                     .exp()
                     .to(torch::kCPU, torch::kFloat32)
                     .reshape({f.size(0), f.size(1), -1})
                     .contiguous();
  for (std::size_t i = begin; i < end; ++i) {
    const auto row = p[static_cast<std::int64_t>(i - begin)];
    const auto n = (problems[i].sequence.size() - 1) * task::kRegbenchTypes;
    score.add(problems[i].automaton, problems[i].sequence, {row.const_data_ptr<float>(), n},
        problems[i].origin);
  }
}

int eval_regbench(const EvalRegbenchOptions& options, const cli::Context& context) {
  if ((options.ngram != 0) != options.model.empty()) core::bad_usage("give -m MODEL or --ngram N");
  const shard::Dataset data(options.files);
  const auto problems = task::read_regbench_problems(data, options.automata);
  core::Output out(context.output);
  task::RegbenchScore score;
  cli::Progress progress(context, "scoring", "sequences", problems.size());
  if (options.ngram > 0) {
    for (const auto& problem : problems) {
      score.add(problem.automaton, problem.sequence,
          task::ngram_predictions(problem.sequence, options.ngram), problem.origin);
      progress.update(score.sequences);
    }
  } else {
    nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
    const auto device = nn::device(options.compute.device);
    const auto loaded = model::load(options.model, device, torch::kFloat32, options.adapter);
    model::check_tokenizer(loaded, data.header(), data.name());
    const torch::NoGradGuard no_gradient;
    const auto step = static_cast<std::size_t>(options.batch);
    for (std::size_t begin = 0; begin < problems.size(); begin += step) {
      score_with(*loaded.model, data, problems, begin, std::min(begin + step, problems.size()),
          device, score);
      progress.update(score.sequences);
    }
  }
  if (score.all.positions == 0)
    core::bad_data("{}: nothing to score; no sequence has a symbol after its first", data.name());
  out.write(cli::format_report(context, task::figures(score)));
  out.commit();
  return 0;
}

}  // namespace

int eval_regbench_main(int argc, char** argv) {
  EvalRegbenchOptions options;
  return cli::run(argc, argv,
      cli::without_seed({"eval-regbench",
          "Measure how well a model, or counts of n-grams, follows the regular language of each "
          "sequence.",
          "  eval-regbench -m model --automata test.jsonl test.shard.zst\n"
          "  eval-regbench --ngram 3 --automata test.jsonl --json test.shard.zst",
          {"model", "adapter", "automata"}}),
      options, eval_regbench);
}
