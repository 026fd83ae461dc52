// gen-induction: writes sequences in which the token that follows a symbol must be looked up in the
// sequence.
//
// stdout, or -o: a shard of tokens (man 5 shard) without a tokenizer. Each document is a sequence;
// its last token is the answer.

#include "cli/run.h"
#include "shard/writer.h"
#include "task/sequences.h"

namespace {

struct Options {
  std::int64_t n = 5000, first = 0;
  task::InductionShape shape;
  void fields(core::FieldList& f) {
    f("count", n, "number of sequences").between(1, 1e12).short_name = 'n';
    f("first", first, "number of the first sequence; use another range for a test set")
        .between(0, 1e12);
    f("symbols", shape.symbols, "size of the vocabulary").between(3, 1e6);
    f("pairs", shape.pairs, "key-value pairs of a sequence").between(1, 500e3);
    f("gap", shape.gap, "maximum noise symbols after a pair").between(0, 16e6);
    f("length", shape.length, "tokens per sequence").between(4, 16e6);
  }
};

int generate(const Options& options, const cli::Context& context) {
  const auto& shape = options.shape;
  if (shape.symbols <= 2 * shape.pairs)
    core::bad_usage("--symbols: must be more than twice --pairs");
  cli::refuse_binary_to_terminal(context);
  shard::Header header;
  header.vocabulary = static_cast<std::uint64_t>(shape.symbols);
  header.dtype = shard::dtype_for(header.vocabulary);
  core::OrderedJson made = core::to_json(options);
  made["seed"] = context.seed;
  core::Output out(context.output);
  shard::Writer writer(out, header, {shard::provenance_entry("gen-induction", made, {})},
      static_cast<int>(context.jobs));
  for (std::int64_t i = options.first; i < options.first + options.n; ++i) {
    core::Rng rng(static_cast<std::uint64_t>(context.seed), static_cast<std::uint64_t>(i));
    const auto sequence = task::induction_sequence(shape, rng);
    writer.write(std::span<const std::uint32_t>(sequence));
    writer.end_document();
  }
  writer.finish();
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      {"gen-induction",
          "Generate sequences for induction: what follows a symbol must be looked up earlier in the "
          "sequence.",
          "  gen-induction -n 5000 -o train.shard.zst\n"
          "  gen-induction -n 500 --first 5000 -o test.shard.zst"},
      options, generate);
}
