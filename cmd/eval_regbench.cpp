// eval-regbench: how well a model, or n-gram counts, follow the regular language of each sequence.
//
// FILE: a shard of gen-regbench; --automata: the file it wrote beside it. stdout: accuracy and
// total variation, each convention under a name of its own.

#include <algorithm>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/windows.h"
#include "model/folder.h"
#include "nn/runtime.h"
#include "shard/dataset.h"
#include "task/regbench.h"

namespace {

using core::Code;
using core::fail;

struct Options {
  std::vector<std::string> files;
  std::string model, automata, device = "auto";
  std::int64_t ngram = 0, batch = 16;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of gen-regbench; - or none is stdin");
    f("model", model, "the model's folder").short_name = 'm';
    f("ngram", ngram, "no model: n-grams counted in the sequence so far, with back-off");
    f("automata", automata, "the automaton of each sequence, as gen-regbench wrote them").required =
        true;
    f("batch", batch, "sequences that share a forward");
    f("device", device, "cpu, cuda, cuda:1, or auto");
  }
};

struct Problem {
  std::uint64_t begin = 0;
  task::Sequence sequence;
  task::Automaton automaton;
  std::string origin;  ///< the automaton's line
};

std::vector<Problem> read_problems(const Options& options, const shard::Dataset& data) {
  const auto& ends = data.documents().end;
  std::vector<Problem> problems(ends.size());
  const auto text = core::read_text(options.automata);
  std::size_t at = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    auto& problem = problems[i];
    problem.origin = fmt::format("{}:{}", options.automata, i + 1);
    if (at >= text.size())
      fail(Code::bad_data, "{}: has {} lines, {} has {} sequences; give the file made with it",
           options.automata, i, data.name(), problems.size());
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = core::parse_json(text.substr(at, end - at), problem.origin);
    at = end + 1;
    if (!line.is_object() || !line.contains("states"))
      fail(Code::bad_data, "{}: no \"states\" in it", problem.origin);
    problem.automaton = task::automaton_of_json(core::dump(line["states"]), problem.origin);
    problem.begin = i == 0 ? 0 : ends[i - 1];
    std::vector<std::uint32_t> tokens(ends[i] - problem.begin);
    data.read(problem.begin, std::span(tokens));
    problem.sequence.assign(tokens.begin(), tokens.end());
    task::states_of(problem.automaton, problem.sequence, problem.origin);
  }
  if (at < text.size())
    fail(Code::bad_data, "{}: has more lines than {} has sequences; give the file made with it",
         options.automata, data.name());
  return problems;
}

/// Adds problems [begin, end) as the model predicts them.
void score_with(nn::Model& model, const shard::Dataset& data, const std::vector<Problem>& problems,
                std::size_t begin, std::size_t end, torch::Device device,
                task::RegbenchScore& score) {
  std::vector<infer::Span> spans;
  for (std::size_t i = begin; i < end; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    const auto inputs = static_cast<std::int64_t>(problems[i].sequence.size()) - 1;
    spans.push_back({problems[i].begin + 1, inputs, 0, number, number, true});
  }
  const auto batch = infer::batch_of(spans, data, -1, model.vocabulary).to(device);
  const auto f = model.architecture->forward(batch, nullptr).f;  // (B, T, d)
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

core::OrderedJson figures(const task::RegbenchScore& score) {
  return {{"sequences", score.sequences},
          {"positions", score.all.positions},
          {"accuracy", score.all.accuracy()},
          {"accuracy_last", score.last.accuracy()},
          {"tvd", score.all.tvd()},
          {"tvd_last", score.last.tvd()},
          {"tvd_with_separators", score.with_separators.tvd()},
          {"l1", score.all.l1_mean()},
          {"l1_last", score.last.l1_mean()},
          {"l1_with_separators", score.with_separators.l1_mean()}};
}

int eval_regbench(const Options& options, const cli::Context& context) {
  constexpr std::int64_t kLongest = 12;
  if ((options.ngram != 0) != options.model.empty())
    fail(Code::usage, "give -m MODEL or --ngram N");
  if (options.ngram < 0 || options.ngram > kLongest)
    fail(Code::usage, "--ngram takes 1 to {}", kLongest);
  if (options.batch < 1) fail(Code::usage, "--batch takes a positive number");
  const shard::Dataset data(options.files);
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  if (data.header().vocabulary != task::kRegbenchTypes)
    fail(Code::bad_data, "{}: has {} types of tokens, not gen-regbench's {}", data.name(),
         data.header().vocabulary, task::kRegbenchTypes);
  const auto problems = read_problems(options, data);
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
    nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
    const auto device = nn::device(options.device);
    const auto loaded = model::load(options.model, device);
    model::check_tokenizer(loaded, data.header(), data.name());
    const torch::NoGradGuard no_gradient;
    const auto step = static_cast<std::size_t>(options.batch);
    for (std::size_t begin = 0; begin < problems.size(); begin += step) {
      score_with(*loaded.model, data, problems, begin, std::min(begin + step, problems.size()),
                 device, score);
      progress.update(score.sequences);
    }
  }
  out.write(cli::format_report(context, figures(score)));
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"eval-regbench",
                   "How well a model, or n-gram counts, follow the regular language of each "
                   "sequence.",
                   "  eval-regbench -m model --automata test.jsonl test.shard.zst\n"
                   "  eval-regbench --ngram 3 --automata test.jsonl --json test.shard.zst"},
                  options, eval_regbench);
}
