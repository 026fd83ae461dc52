// gen-regbench: writes sequences of random regular languages, each to be learned from the sequence
// itself.
//
// stdout, or -o: a shard of tokens (man 5 shard) of 20 types, one document per sequence.
// --automata: JSON lines, the automaton of each sequence.

#include <functional>
#include <optional>
#include <string>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "shard/writer.h"
#include "task/regbench.h"
#include "text/tokenizer/word_level.h"

namespace {

struct Options {
  task::RegbenchSet set;
  std::string automata;
  void fields(core::FieldList& f) {
    set.fields(f);
    f("automata", automata, "file for the automaton of each sequence");
    f("least-words", set.shape.least_words, "minimum words of a sequence").between(1, 65536);
    f("most-words", set.shape.most_words, "maximum words of a sequence").between(1, 65536);
    f("longest-word", set.shape.longest_word, "maximum symbols of a word").between(1, 65536);
  }
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
  options.set.check();
  const std::string out_path = context.output.empty() ? "-" : context.output;
  if (options.automata == out_path)
    core::bad_usage(
        "--automata and -o: both are {}; give two files", out_path == "-" ? "stdout" : out_path);
  cli::refuse_binary_to_terminal(context);
  const int jobs = static_cast<int>(context.jobs);
  core::Output out(context.output);
  std::optional<core::Output> automata;
  std::function<void(const std::string&)> lines;
  if (!options.automata.empty()) {
    automata.emplace(options.automata);
    lines = [&](const std::string& text) { automata->write(text); };
  }
  shard::Writer writer(out, header(),
      {shard::provenance_entry("gen-regbench", options.set.changes(context.seed), {})}, jobs);
  cli::Progress progress(
      context, "making", "sequences", static_cast<std::uint64_t>(options.set.count));
  task::make_sequences(options.set, static_cast<std::uint64_t>(context.seed), jobs, writer, lines,
      progress.counter());
  writer.finish();
  if (automata) automata->commit();
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      {"gen-regbench", "Generate sequences of random regular languages, for in-context learning.",
          "  gen-regbench -n 5000 -o train.shard.zst\n"
          "  gen-regbench --split test -n 500 --automata test.jsonl -o test.shard.zst\n"
          "  gen-regbench --split iid --environments 5000 -n 500 --automata "
          "iid.jsonl -o iid.shard.zst"},
      options, generate);
}
