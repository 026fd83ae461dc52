// compare-ppl: tests whether one model's perplexity is significantly lower than another's.
//
// A, B: two --per-token files of eval-ppl over the same tokens; one may be `-`, stdin. --a, --b:
// one such file of each seed. stdout: one record: losses in nats per token, their difference B - A
// with its interval and p-value, or with --a alone their mean and standard deviation.

#include "cli/progress.h"
#include "task/comparison.h"

namespace {

using core::Code;

struct Options {
  std::string a, b;
  std::vector<std::string> seeds_a, seeds_b;
  std::string block = "auto";
  double confidence = 0.95;
  bool fail_unless_better = false;
  void fields(core::FieldList& f) {
    f.positional("A", a, "per-token scores of one model");
    f.positional("B", b, "per-token scores of the other, on the same tokens");
    f("a", seeds_a, "instead of A: per-token scores of one model, a file for each seed").several();
    f("b", seeds_b,
        "instead of B: the other's scores, seeds in the same order; without --b, --a is summarized")
        .several();
    f("block", block,
        "block of the test: document, or a number of tokens; auto: documents if equivalent to at "
        "least 6 of equal length, else a number of tokens that depends on the text's length");
    f("confidence", confidence, "confidence level of the interval").above(0).below(1);
    f("fail-unless-better", fail_unless_better,
        "exit with 1 unless B's loss is lower with p below 1 - confidence");
  }
};

// Puts A and B in the lists, as one seed each, and checks the lists.
void check(Options& options) {
  auto &a = options.seeds_a, &b = options.seeds_b;
  if (options.a.empty() && a.empty())
    core::bad_usage("{} is missing; see --help", b.empty() ? "A" : "--a");
  if (!options.a.empty()) {
    if (!a.empty() || !b.empty()) core::bad_usage("give A and B, or --a and --b");
    if (options.b.empty()) core::bad_usage("B is missing; see --help");
    a = {options.a}, b = {options.b};
  }
  if (!b.empty() && a.size() != b.size())
    core::bad_usage("--a has {} files and --b has {}; give one of each seed, in the same order",
        a.size(), b.size());
  if (b.empty() && a.size() < 2)
    core::bad_usage("--a alone takes the files of at least 2 seeds; --b compares");
  if (b.empty() && options.fail_unless_better)
    core::bad_usage("--fail-unless-better: requires --b");
  if (std::count(a.begin(), a.end(), "-") + std::count(b.begin(), b.end(), "-") > 1)
    core::bad_usage("only one file can be -");
}

int compare_ppl(Options options, const cli::Context& context) {
  check(options);
  const auto choice = task::block_choice_of(options.block);
  if (options.seeds_b.empty()) {
    const auto pairs = task::read_score_pairs({}, options.seeds_a, choice);
    const auto found = task::compare_seeds(pairs.by_seed, options.confidence);
    cli::write_report(context, task::figures_alone(found, pairs));
    return 0;
  }
  const auto pairs = task::read_score_pairs(options.seeds_a, options.seeds_b, choice);
  const auto text = task::compare(pairs, choice, options.confidence);
  const bool seeds = pairs.by_seed.size() > 1;
  const auto found = seeds ? task::compare_seeds(pairs.by_seed, options.confidence) : text;
  cli::note(context, task::caution(pairs, choice));
  cli::write_report(context, seeds ? task::figures_over_seeds(found, text, pairs, choice)
                                   : task::figures(found, pairs, choice));
  const bool better = found.difference < 0 && found.p < 1 - options.confidence;
  return static_cast<int>(options.fail_unless_better && !better ? Code::no : Code::ok);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      cli::without_seed({"compare-ppl",
          "Compare two models' per-token scores: mean difference, confidence interval and p-value.",
          "  eval-ppl -m plain --per-token a.tsv test.shard.zst\n"
          "  eval-ppl -m trime --per-token b.tsv test.shard.zst\n"
          "  compare-ppl a.tsv b.tsv\n"
          "  compare-ppl --a a1.tsv a2.tsv a3.tsv --b b1.tsv b2.tsv b3.tsv",
          {"a", "b"}}),
      options, compare_ppl);
}
