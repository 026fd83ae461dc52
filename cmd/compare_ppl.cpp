// compare-ppl: is one model's perplexity lower than another's, or is it chance?
//
// A, B: two --per-token files of eval-ppl over the same tokens; one may be `-`, stdin.
// stdout: one record: losses in nats a token, their difference B - A with its interval and p.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/units.h"
#include "task/bootstrap.h"
#include "task/token_scores.h"

namespace {

using core::Code;
using core::fail;

struct Options {
  std::string a, b;
  std::string block = "auto";
  std::int64_t resamples = 10'000;
  double confidence = 0.95;
  bool fail_unless_better = false;
  void fields(core::FieldList& f) {
    f.positional("A", a, "per-token scores of one model").required = true;
    f.positional("B", b, "per-token scores of the other, on the same tokens").required = true;
    f("block", block,
      "what is drawn together: document, or so many tokens; auto: documents if there are 50, else "
      "512");
    f("resamples", resamples, "how many times to draw");
    f("confidence", confidence, "share of the draws that the interval holds");
    f("fail-unless-better", fail_unless_better,
      "exit 1 unless B's loss is lower and p is below 1 - confidence");
  }
};

struct Pairs {
  std::vector<task::ScoreBlock> by_tokens, by_document;
  std::uint64_t tokens = 0;
};

void add(std::vector<task::ScoreBlock>& blocks, double a, double b) {
  blocks.back().a += a, blocks.back().b += b, ++blocks.back().tokens;
}

// Both files in step; every line must score the same token.
Pairs read_pairs(const Options& options, std::uint64_t block) {
  const auto source_a = core::open_source(options.a), source_b = core::open_source(options.b);
  task::TokenScoreReader reader_a(*source_a), reader_b(*source_b);
  task::TokenScore a, b;
  Pairs pairs;
  std::optional<std::uint64_t> document;
  while (true) {
    const bool more_a = reader_a.next(a), more_b = reader_b.next(b);
    if (more_a != more_b)
      fail(Code::bad_data, "{} ends after line {}, {} goes on; they score different tokens",
           more_a ? reader_b.name() : reader_a.name(), more_a ? reader_b.line() : reader_a.line(),
           more_a ? reader_a.name() : reader_b.name());
    if (!more_a) return pairs;
    if (a.position != b.position || a.token != b.token)
      fail(Code::bad_data,
           "{}:{}: token {} at {}, but {}:{} has token {} at {}; they score different tokens",
           reader_a.name(), reader_a.line(), a.token, a.position, reader_b.name(), reader_b.line(),
           b.token, b.position);
    if (document != a.document) pairs.by_document.emplace_back();
    document = a.document;
    if (pairs.tokens % block == 0) pairs.by_tokens.emplace_back();
    add(pairs.by_document, a.nats, b.nats);
    add(pairs.by_tokens, a.nats, b.nats);
    ++pairs.tokens;
  }
}

int compare_ppl(const Options& options, const cli::Context& context) {
  if (options.a == "-" && options.b == "-") fail(Code::usage, "only one of A and B can be -");
  if (options.resamples < 1) fail(Code::usage, "--resamples: takes a positive number");
  if (!(options.confidence > 0 && options.confidence < 1))
    fail(Code::usage, "--confidence: takes a share between 0 and 1");
  const bool sized = options.block != "auto" && options.block != "document";
  const std::int64_t block = sized ? core::parse_size(options.block) : 512;
  if (block < 1) fail(Code::usage, "--block: takes document or a positive number of tokens");

  const Pairs pairs = read_pairs(options, static_cast<std::uint64_t>(block));
  const bool by_document =
      options.block == "document" || (!sized && pairs.by_document.size() >= 50);
  const auto& blocks = by_document ? pairs.by_document : pairs.by_tokens;
  const auto found = task::compare(blocks, options.resamples, options.confidence,
                                   static_cast<std::uint64_t>(context.seed), context.jobs);
  core::OrderedJson report;
  report["tokens"] = pairs.tokens;
  report["blocks"] = blocks.size();
  report["block"] = by_document ? "document" : std::to_string(block);
  report["loss_a"] = found.loss_a;
  report["loss_b"] = found.loss_b;
  report["perplexity_a"] = std::exp(found.loss_a);
  report["perplexity_b"] = std::exp(found.loss_b);
  report["difference"] = found.difference;
  report["low"] = found.low;
  report["high"] = found.high;
  report["perplexity_ratio"] = std::exp(found.difference);
  report["ratio_low"] = std::exp(found.low);
  report["ratio_high"] = std::exp(found.high);
  report["p"] = found.p;
  core::Output out(context.output);
  out.write(cli::format_report(context, report));
  out.commit();
  const bool better = found.difference < 0 && found.p < 1 - options.confidence;
  return static_cast<int>(options.fail_unless_better && !better ? Code::no : Code::ok);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"compare-ppl",
                   "Compares two models' scores of the same tokens: the difference, its interval, "
                   "and how likely it is by chance.",
                   "  eval-ppl -m plain --per-token a.tsv test.shard.zst\n"
                   "  eval-ppl -m trime --per-token b.tsv test.shard.zst\n"
                   "  compare-ppl a.tsv b.tsv"},
                  options, compare_ppl);
}
