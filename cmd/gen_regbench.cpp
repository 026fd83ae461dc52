// gen-regbench: sequences of random regular languages, each to be learned from the sequence itself.
//
// stdout, or -o: a shard of tokens (man 5 shard) of 20 types, a document a sequence.
// --automata: JSON lines, the automaton behind each sequence.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "shard/writer.h"
#include "task/regbench.h"
#include "text/in_order.h"
#include "text/word_level.h"

namespace {

using core::Code;

struct Options {
  std::string split = "train", automata;
  std::int64_t n = 5000, first = 0, environments = 0;
  task::SequenceShape shape;
  void fields(core::FieldList& f) {
    f("split", split,
      "whose automata: no language is in two of train, valid, test; iid: new sequences of train's",
      {"train", "valid", "test", "iid"});
    f("count", n, "how many sequences").short_name = 'n';
    f("first", first, "number of the first: parts of one set can be made apart");
    f("environments", environments,
      "automata that the sequences share; 0: one each. iid: as many as train had");
    f("automata", automata, "write the automaton of each sequence to this file");
    f("least-words", shape.least_words, "fewest words of a sequence");
    f("most-words", shape.most_words, "most words of a sequence");
    f("longest-word", shape.longest_word, "most letters of a word");
  }
};

void check(const Options& options) {
  const auto& shape = options.shape;
  if (options.n < 1 || options.first < 0 || options.environments < 0)
    core::fail(Code::usage, "--count, --first and --environments take numbers of sequences");
  if (options.split == "iid" && options.environments == 0)
    core::fail(Code::usage, "--split iid: give --environments, how many automata train had");
  if (shape.least_words < 1 || shape.most_words < shape.least_words || shape.most_words > 1 << 16 ||
      shape.longest_word < 1 || shape.longest_word > 1 << 16)
    core::fail(Code::usage,
               "--least-words, --most-words and --longest-word take 1 to 65536, in this order");
}

/// Sequences [first, first + count) and the lines of their automata.
struct Block {
  std::uint64_t first = 0, count = 0;
};
struct Made {
  std::vector<std::uint32_t> tokens;
  std::vector<std::size_t> lengths;
  std::string lines;
};

class Maker {
 public:
  Maker(const Options& options, std::uint64_t seed)
      : options_(options),
        seed_(seed),
        split_(options.split == "valid"  ? task::RegbenchSplit::valid
               : options.split == "test" ? task::RegbenchSplit::test
                                         : task::RegbenchSplit::train) {}

  void make(const Block& block, Made& made) const {
    made = {};
    for (auto number = block.first; number < block.first + block.count; ++number) {
      // Apart from the streams that automata are drawn from, and from each other.
      const std::uint64_t kind = options_.split == "iid" ? 3 : static_cast<std::uint64_t>(split_);
      core::Rng rng(~seed_, 4 * number + kind);
      const auto environments = static_cast<std::uint64_t>(options_.environments);
      const auto environment = options_.split == "iid" ? rng.below(environments)
                               : environments > 0      ? number % environments
                                                       : number;
      const auto automaton = task::regbench_automaton(seed_, split_, environment);
      const auto sequence = task::random_sequence(automaton, options_.shape, rng);
      made.tokens.insert(made.tokens.end(), sequence.begin(), sequence.end());
      made.lengths.push_back(sequence.size());
      if (!options_.automata.empty())
        made.lines += fmt::format("{{\"sequence\":{},\"automaton\":{},\"states\":{}}}\n", number,
                                  environment, task::to_json(automaton));
    }
  }

 private:
  const Options& options_;
  std::uint64_t seed_;
  task::RegbenchSplit split_;
};

shard::Header header() {
  text::Vocabulary vocabulary;
  for (const char token : task::kRegbenchTokens) vocabulary.add(std::string(1, token));
  shard::Header header;
  header.vocabulary = vocabulary.size();
  header.dtype = shard::dtype_for(header.vocabulary);
  header.tokenizer = text::WordLevel(std::move(vocabulary), {".", ""}).json();
  return header;
}

int generate(const Options& options, const cli::Context& context) {
  check(options);
  cli::refuse_binary_to_terminal(context);
  core::Output out(context.output);
  std::optional<core::Output> automata;
  if (!options.automata.empty()) automata.emplace(options.automata);
  core::OrderedJson made = {{"split", options.split},
                            {"count", options.n},
                            {"first", options.first},
                            {"environments", options.environments},
                            {"least_words", options.shape.least_words},
                            {"most_words", options.shape.most_words},
                            {"longest_word", options.shape.longest_word},
                            {"seed", context.seed}};
  shard::Writer writer(out, header(), {shard::provenance_entry("gen-regbench", made, {})},
                       static_cast<int>(context.jobs));
  const Maker maker(options, static_cast<std::uint64_t>(context.seed));
  cli::Progress progress(context, "making", "sequences", static_cast<std::uint64_t>(options.n));
  constexpr std::uint64_t kBlock = 256;
  auto next = static_cast<std::uint64_t>(options.first);
  const auto end = next + static_cast<std::uint64_t>(options.n);
  text::work_in_order<Block, Made>(
      static_cast<int>(context.jobs),
      [&](Block& block) {
        block = {next, std::min(kBlock, end - next)};
        next += block.count;
        return block.count > 0;
      },
      [&] { return [&](Block& block, Made& to) { maker.make(block, to); }; },
      [&](Made& from) {
        std::span<const std::uint32_t> rest(from.tokens);
        for (const auto length : from.lengths) {
          writer.write(rest.first(length));
          writer.end_document();
          rest = rest.subspan(length);
        }
        if (automata) automata->write(from.lines);
        progress.update(next - static_cast<std::uint64_t>(options.first));
      });
  writer.finish();
  if (automata) automata->commit();
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(
      argc, argv,
      {"gen-regbench",
       "Sequences of random regular languages, each to be learned from the sequence itself.",
       "  gen-regbench -n 5000 -o train.shard.zst\n"
       "  gen-regbench --split test -n 500 --automata test.jsonl -o test.shard.zst\n"
       "  gen-regbench --split iid --environments 5000 -n 500 --automata iid.jsonl -o "
       "iid.shard.zst"},
      options, generate);
}
