// bm25-pack: writes an order of a shard's segments, documents or pairs in which neighbours resemble
// each other.
//
// FILE: shards of tokens or pairs, with their tokenizer. stdout: a shard of kind order (man 5
// shard). With --dump it is text, a line for each unit or hit. With --part it is hits, for --hits.
// stderr: statistics of the order.

#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "cli/summary.h"
#include "core/error.h"
#include "core/io.h"
#include "passages/hits_file.h"
#include "passages/pack_data.h"

namespace {

struct Options {
  std::vector<std::string> files;
  passages::PackOptions pack;
  passages::HitsOptions hits;
  cli::SummaryOptions summary;

  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens or pairs; stdin if - or not given");
    pack.fields(f);
    hits.fields(f);
    summary.fields(f);
  }
};

int dump_terms(const passages::PackingData& in, const cli::Context& context) {
  core::Output out(context.output);
  passages::print_terms(in, static_cast<int>(context.jobs), out);
  out.commit();
  return 0;
}

passages::TermLists read_terms(
    const passages::PackingData& in, const Options& options, const cli::Context& context) {
  cli::Progress progress(context, "analyse", in.unit.name + "s", in.units());
  return passages::list_terms(in, options.pack, static_cast<int>(context.jobs), progress.counter());
}

passages::SearchedHits find_hits(const passages::PackingData& in, const passages::Bm25& bm25,
    const Options& options, const cli::Context& context) {
  cli::Progress progress(context, "search", "queries");
  const auto queries = passages::queries_of(bm25.lists().size(), core::part(options.hits.part),
      static_cast<std::uint64_t>(options.hits.queries), static_cast<std::uint64_t>(context.seed));
  auto found = passages::find_hits(
      in, bm25, options.pack, queries, static_cast<int>(context.jobs), progress.counter());
  const bool spilled = bm25.lists().spilled();
  if (found.parts > 1 || spilled)
    cli::note(context, fmt::format("searched the index in {} parts{}", found.parts,
                           spilled ? ", with the terms on disk" : ""));
  if (!options.hits.timings.empty())
    core::write_file(options.hits.timings, core::dump(found.timings()) + "\n");
  return found;
}

// Writes hits as lines, or as a part for --hits.
int write_hits(const passages::SearchedHits& found, const passages::PackingData& in,
    const Options& options, const cli::Context& context, cli::Summary& summary) {
  core::Output out(context.output);
  if (options.hits.dump == "hits") passages::print_hits(found, out);
  else
    passages::write_hits(
        passages::search_of(in, options.pack), core::part(options.hits.part), found.hits, out);
  out.commit();
  summary.commit({{"queries", found.queries.size()}}, {});
  return 0;
}

int pack(const Options& options, const cli::Context& context) {
  options.hits.check(options.pack.searches());
  const auto in = passages::open_packing(options.files, options.pack);
  options.summary.check(options.hits.dump != "terms");
  if (options.hits.dump == "terms") return dump_terms(in, context);
  if (options.hits.dump.empty()) cli::refuse_binary_to_terminal(context);
  cli::Summary summary(context, options.summary);
  std::optional<passages::SearchedHits> found;
  if (options.hits.joins())
    found.emplace(passages::join_hits(options.hits.files, in, options.pack));
  const auto lists = read_terms(in, options, context);
  const passages::Bm25 bm25(lists, {options.pack.k1, options.pack.b});
  if (!found && (options.pack.searches() || options.hits.gives_hits()))
    found.emplace(find_hits(in, bm25, options, context));
  if (options.hits.gives_hits()) return write_hits(*found, in, options, context, summary);

  const auto seed = static_cast<std::uint64_t>(context.seed);
  const auto packed = passages::pack(
      in, bm25, found ? &*found : nullptr, options.pack, seed, static_cast<int>(context.jobs));
  core::Output out(context.output);
  const auto fingerprint = passages::write_order(packed.order, in, options.pack, seed, out);
  out.commit();
  summary.commit(packed.figures(in.unit.name, bm25, options.pack.searches(), fingerprint),
      {packed.summary(in.unit.name, options.pack.searches())});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      {"bm25-pack", "Order the segments of a text so that neighbours are similar by BM25.",
          "  bm25-pack --segment 512 train.shard.zst -o order.shard.zst\n"
          "  bm25-pack --method paths train.shard.zst -o order.shard.zst\n"
          "  bm25-pack --dump hits --queries 100 train.shard.zst | less",
          {"hits"}},
      options, pack);
}
