// compare-ppl: tests whether one model's perplexity is significantly lower than another's.
//
// A, B: two --per-token files of eval-ppl over the same tokens; one may be `-`, stdin. stdout: one
// record: losses in nats per token, their difference B - A with its interval and p-value.

#include <string>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "task/score_pairs.h"

namespace {

using core::Code;
using core::fail;

struct Options {
  std::string a, b;
  std::string block = "auto";
  double confidence = 0.95;
  bool fail_unless_better = false;
  void fields(core::FieldList& f) {
    f.positional("A", a, "per-token scores of one model").required = true;
    f.positional("B", b, "per-token scores of the other, on the same tokens").required = true;
    f("block", block,
      "block: document, or a number of tokens; auto: documents if they count as at least 6 of "
      "equal length, else a number of tokens that follows from the length of the text");
    f("confidence", confidence, "confidence level of the interval").above(0).below(1);
    f("fail-unless-better", fail_unless_better,
      "exit with 1 unless B's loss is lower with p below 1 - confidence");
  }
};

int compare_ppl(const Options& options, const cli::Context& context) {
  if (options.a == "-" && options.b == "-") fail(Code::usage, "only one of A and B can be -");
  const auto choice = task::block_choice_of(options.block);
  const auto pairs = task::read_score_pairs(options.a, options.b, choice);
  const auto found = task::compare(pairs, choice, options.confidence);
  cli::note(context, task::caution(pairs, choice));
  cli::write_report(context, task::figures(found, pairs, choice));
  const bool better = found.difference < 0 && found.p < 1 - options.confidence;
  return static_cast<int>(options.fail_unless_better && !better ? Code::no : Code::ok);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(
      argc, argv,
      {"compare-ppl",
       "Compare two models' per-token scores: mean difference, confidence interval and p-value.",
       "  eval-ppl -m plain --per-token a.tsv test.shard.zst\n"
       "  eval-ppl -m trime --per-token b.tsv test.shard.zst\n"
       "  compare-ppl a.tsv b.tsv"},
      options, compare_ppl);
}
