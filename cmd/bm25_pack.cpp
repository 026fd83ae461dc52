// bm25-pack: an order of a shard's segments, documents or pairs in which neighbours resemble each
// other.
//
// FILE: shards of tokens or pairs, with their tokenizer. stdout: a shard of kind order (man 5
// shard); with --dump text, a line a unit or a hit. stderr: what the order is worth.

#include <chrono>
#include <ctime>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "text/bm25_search.h"
#include "text/decode_documents.h"
#include "text/packing.h"
#include "text/packing_units.h"

namespace {

using core::Code;

struct Options {
  std::vector<std::string> files;
  std::string unit = "auto";
  std::int64_t segment = 512, top = 20;
  double k1 = 0.9, b = 0.4;
  std::string method = "greedy", dump;
  std::int64_t memory = std::int64_t{2} << 30, queries = 0;

  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens or pairs; - or none is stdin");
    f("unit", unit, "what is ordered; auto: pairs of a shard of pairs, else segments",
      {"auto", "segment", "document", "pair"});
    f("segment", segment, "tokens of a segment");
    f("method", method,
      "greedy: TRIME's chain; paths: a cover by paths, heavier and with fewer jumps; random: "
      "shuffled",
      {"greedy", "paths", "random"});
    f("memory", memory,
      "bytes for the terms and as many for the index; beyond it terms go to disk");
    f.group("BM25");
    f("top", top, "hits of a unit, itself among them");
    f("k1", k1, "how slowly a repeated term saturates");
    f("b", b, "how much a unit's length counts, 0 to 1");
    f.group("Other jobs");
    f("dump", dump, "print the terms of each unit, or its hits, instead of an order",
      {"terms", "hits"});
    f("queries", queries, "--dump hits: of so many units, drawn by the seed [0: all]");
  }
};

struct Input {
  shard::Dataset data;
  text::PackingUnit unit;
  text::TokenizerPtr tokenizer;
  std::optional<std::uint32_t> end_of_document;
};

Input open(const Options& options) {
  Input in{shard::Dataset(options.files), {}, nullptr, {}};
  const auto& header = in.data.header();
  in.unit.name = options.unit;
  if (options.unit == "auto") in.unit.name = header.kind == shard::Kind::pairs ? "pair" : "segment";
  in.unit.length = static_cast<std::uint64_t>(std::max<std::int64_t>(options.segment, 0));
  text::expect_units(in.data, in.unit);
  if (header.tokenizer.empty())
    core::fail(Code::bad_data, "{}: has no tokenizer, so no text to compare", in.data.name());
  in.tokenizer = text::parse_tokenizer(header.tokenizer, in.data.name() + ": tokenizer");
  in.end_of_document = text::end_of_document_of(in.data, *in.tokenizer);
  if (text::count_units(in.data, in.unit) == 0)
    core::fail(Code::bad_data, "{}: has no {}", in.data.name(), in.unit.name);
  return in;
}

void check(const Options& options) {
  if (options.top < 1 || options.top > 10000)
    core::fail(Code::usage, "--top takes a number from 1 to 10000");
  if (!(options.k1 >= 0)) core::fail(Code::usage, "--k1 takes a number from 0 on");
  if (!(options.b >= 0 && options.b <= 1))
    core::fail(Code::usage, "--b takes a number from 0 to 1");
  if (options.memory < 1) core::fail(Code::usage, "--memory takes bytes, such as 2G");
  if (options.queries < 0 || (options.queries > 0 && options.dump != "hits"))
    core::fail(Code::usage, "--queries takes a number, and goes with --dump hits");
}

int dump_terms(const Input& in, const cli::Context& context) {
  core::Output out(context.output);
  std::string line;
  text::analyze_units(in.data, in.tokenizer, in.end_of_document, in.unit,
                      static_cast<int>(context.jobs), [&](text::AnalyzedUnits& part) {
                        for (const auto& list : part.lists) {
                          line.clear();
                          for (const auto& [term, count] : list)
                            for (std::uint32_t i = 0; i < count; ++i)
                              line.append(line.empty() ? "" : " ").append(part.strings[term]);
                          out.write(line += '\n');
                        }
                      });
  out.commit();
  return 0;
}

text::TermLists read_terms(const Input& in, const Options& options, const cli::Context& context) {
  cli::Progress progress(context, "analyse", in.unit.name + "s",
                         text::count_units(in.data, in.unit));
  return text::list_terms(in.data, in.tokenizer, in.end_of_document, in.unit,
                          static_cast<int>(context.jobs),
                          static_cast<std::uint64_t>(options.memory),
                          [&](std::uint64_t done) { progress.update(done); });
}

struct Found {
  std::vector<std::uint32_t> queries;
  text::Hits hits;
  double queries_per_s, queries_per_cpu_s;  // of the clock; of all threads' work
};

Found find_hits(const text::Bm25& bm25, const Options& options, const cli::Context& context) {
  std::vector<std::uint32_t> queries(bm25.lists().size());
  std::iota(queries.begin(), queries.end(), 0u);
  if (options.queries > 0) {
    queries = text::random_order(bm25.lists().size(), static_cast<std::uint64_t>(context.seed));
    queries.resize(std::min(queries.size(), static_cast<std::size_t>(options.queries)));
  }
  text::SearchOptions how;
  how.top = static_cast<std::uint32_t>(options.top);
  how.jobs = static_cast<int>(context.jobs);
  how.memory = static_cast<std::uint64_t>(options.memory);
  cli::Progress progress(context, "search", "queries");
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto cpu_start = std::clock();
  std::uint32_t parts = 0;
  auto hits = text::search(
      bm25, queries, how, [&](std::uint64_t done) { progress.update(done); }, &parts);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count(),
               cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  if (parts > 1 || bm25.lists().spilled())
    cli::note(context, fmt::format("the index was searched in {} parts{}", parts,
                                   bm25.lists().spilled() ? ", the terms on disk" : ""));
  const auto n = static_cast<double>(queries.size());
  return {std::move(queries), std::move(hits), n / seconds, n / cpu_seconds};
}

int dump_hits(const Found& found, const cli::Context& context) {
  core::Output out(context.output);
  for (std::uint32_t q = 0; q < found.hits.queries(); ++q)
    for (const auto& [unit, score] : found.hits.of(q))
      out.write(fmt::format("{}\t{}\t{:.9g}\n", found.queries[q], unit, score));
  out.commit();
  if (context.json) {
    core::OrderedJson figures;
    figures["queries"] = found.queries.size();
    figures["queries_per_s"] = found.queries_per_s;
    figures["queries_per_cpu_s"] = found.queries_per_cpu_s;
    fmt::print(stderr, "{}", cli::format_report(context, figures));
  }
  return 0;
}

core::Digest write_order(const text::UnitOrder& order, const Input& in, const Options& options,
                         const cli::Context& context) {
  shard::Header header;
  header.kind = shard::Kind::order;
  header.dtype = shard::Dtype::u32;
  header.vocabulary = order.size();
  header.unit = in.unit.name;
  header.unit_length = in.unit.name == "segment" ? in.unit.length : 0;
  header.data_fingerprint = in.data.fingerprint().hex();
  core::OrderedJson changes;
  changes["method"] = options.method;
  changes["unit"] = in.unit.name;
  if (header.unit_length > 0) changes["segment"] = header.unit_length;
  if (options.method != "random") {
    changes["top"] = options.top;
    changes["k1"] = options.k1;
    changes["b"] = options.b;
  }
  if (options.method != "paths") changes["seed"] = context.seed;
  core::Output out(context.output);
  shard::Writer writer(out, header,
                       {shard::provenance_entry("bm25-pack", changes, {in.data.fingerprint()})});
  writer.write(std::span(order));
  writer.finish();
  out.commit();
  return writer.fingerprint();
}

int pack(const Options& options, const cli::Context& context) {
  check(options);
  const Input in = open(options);
  if (options.dump == "terms") return dump_terms(in, context);
  if (options.dump.empty()) cli::refuse_binary_to_terminal(context);
  const auto lists = read_terms(in, options, context);
  const text::Bm25 bm25(lists, {options.k1, options.b});
  const auto seed = static_cast<std::uint64_t>(context.seed);
  const auto random = text::random_order(lists.size(), seed);
  std::optional<Found> found;
  if (options.method != "random" || options.dump == "hits")
    found.emplace(find_hits(bm25, options, context));
  if (options.dump == "hits") return dump_hits(*found, context);

  text::UnitOrder order = random;
  if (options.method == "greedy") order = text::greedy_chain(found->hits, seed);
  if (options.method == "paths")
    order = text::path_cover(bm25, found->hits, static_cast<int>(context.jobs));
  const text::Hits none(lists.size(), 1);
  const auto worth = text::worth_of(order, bm25, found ? found->hits : none);
  const double by_chance = text::worth_of(random, bm25, none).mean_score;
  if (found && worth.links == 0 && order.size() > 1)
    core::fail(Code::bad_data,
               "{}: no {} is among the hits of another, so there is no order but a random one; use "
               "other units, or --method random",
               in.data.name(), in.unit.name);

  const auto fingerprint = write_order(order, in, options, context);
  core::OrderedJson figures;
  figures[in.unit.name + "s"] = order.size();
  figures["terms"] = lists.terms();
  if (found) {
    figures["links"] = worth.links;
    figures["jumps"] = worth.jumps;
  }
  figures["bm25_of_neighbours"] = worth.mean_score;
  figures["bm25_in_random_order"] = by_chance;
  if (found) {
    figures["queries_per_s"] = found->queries_per_s;
    figures["queries_per_cpu_s"] = found->queries_per_cpu_s;
  }
  figures["fingerprint"] = fingerprint.hex();
  if (context.json) {
    fmt::print(stderr, "{}", cli::format_report(context, figures));
  } else {
    cli::note(
        context,
        fmt::format("{} {}s{}, mean BM25 of neighbours {:.2f}, in random order {:.2f}",
                    order.size(), in.unit.name,
                    found ? fmt::format(", {} links, {} jumps", worth.links, worth.jumps) : "",
                    worth.mean_score, by_chance));
  }
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
