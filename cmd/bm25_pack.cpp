// bm25-pack: an order of a shard's segments, documents or pairs in which neighbours resemble each
// other.
//
// FILE: shards of tokens or pairs, with their tokenizer. stdout: a shard of kind order (man 5
// shard); with --dump text, a line a unit or a hit. stderr: what the order is worth.

#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "text/pack/pack_data.h"

namespace {

struct Options {
  std::vector<std::string> files;
  text::PackOptions pack;
  std::string dump, timings;
  std::int64_t queries = 0;

  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens or pairs; - or none is stdin");
    pack.fields(f);
    f.group("Other jobs");
    f("dump", dump, "print the terms of each unit, or its hits, instead of an order",
      {"terms", "hits"});
    f("queries", queries, "--dump hits: of so many units, drawn by the seed [0: all]")
        .between(0, 1e12);
    f("timings", timings,
      "write what depends on the clock to this file: seconds and rates of the search");
  }
};

int dump_terms(const text::PackingData& in, const cli::Context& context) {
  core::Output out(context.output);
  text::print_terms(in, static_cast<int>(context.jobs), out);
  out.commit();
  return 0;
}

text::TermLists read_terms(const text::PackingData& in, const Options& options,
                           const cli::Context& context) {
  cli::Progress progress(context, "analyse", in.unit.name + "s", in.units());
  return text::list_terms(in, options.pack, static_cast<int>(context.jobs), progress.counter());
}

text::Found find_hits(const text::Bm25& bm25, const Options& options, const cli::Context& context) {
  cli::Progress progress(context, "search", "queries");
  auto found = text::find_hits(bm25, options.pack, static_cast<std::uint64_t>(options.queries),
                               static_cast<std::uint64_t>(context.seed),
                               static_cast<int>(context.jobs), progress.counter());
  const bool spilled = bm25.lists().spilled();
  if (found.parts > 1 || spilled)
    cli::note(context, fmt::format("the index was searched in {} parts{}", found.parts,
                                   spilled ? ", the terms on disk" : ""));
  if (!options.timings.empty())
    core::write_file(options.timings, core::dump(found.timings()) + "\n");
  return found;
}

int dump_hits(const text::Found& found, const cli::Context& context) {
  core::Output out(context.output);
  text::print_hits(found, out);
  out.commit();
  if (context.json)
    cli::to_stderr(cli::format_report(context, {{"queries", found.queries.size()}}));
  return 0;
}

int pack(const Options& options, const cli::Context& context) {
  if (options.queries > 0 && options.dump != "hits")
    core::fail(core::Code::usage, "--queries goes with --dump hits");
  const auto in = text::open_packing(options.files, options.pack);
  if (options.dump == "terms") return dump_terms(in, context);
  if (options.dump.empty()) cli::refuse_binary_to_terminal(context);
  const auto lists = read_terms(in, options, context);
  const text::Bm25 bm25(lists, {options.pack.k1, options.pack.b});
  std::optional<text::Found> found;
  if (options.pack.searches() || options.dump == "hits")
    found.emplace(find_hits(bm25, options, context));
  if (options.dump == "hits") return dump_hits(*found, context);

  const auto seed = static_cast<std::uint64_t>(context.seed);
  const auto packed = text::pack(in, bm25, found ? &*found : nullptr, options.pack, seed,
                                 static_cast<int>(context.jobs));
  core::Output out(context.output);
  const auto fingerprint = text::write_order(packed.order, in, options.pack, seed, out);
  out.commit();
  cli::summarise(context, packed.figures(in.unit.name, bm25, options.pack.searches(), fingerprint),
                 packed.summary(in.unit.name, options.pack.searches()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"bm25-pack", "An order of a text's segments in which neighbours are alike.",
                   "  bm25-pack --segment 512 train.shard.zst -o order.shard.zst\n"
                   "  bm25-pack --method paths train.shard.zst -o order.shard.zst\n"
                   "  bm25-pack --dump hits --queries 100 train.shard.zst | less"},
                  options, pack);
}
