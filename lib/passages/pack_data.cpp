#include "passages/pack_data.h"

#include <chrono>
#include <ctime>

#include "passages/bm25_index.h"
#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace passages {

void PackOptions::fields(core::FieldList& f) {
  f("unit", unit, "units to order; auto: pairs for a shard of pairs, else segments",
      {"auto", "segment", "document", "pair"});
  f("segment", segment, "tokens per segment").between(1, 1e9);
  f("method", method,
      "greedy: chain of nearest neighbours, as in TRIME; paths: path cover, with higher "
      "similarity and fewer jumps; random: shuffle",
      {"greedy", "paths", "random"});
  f("buffer-size", buffer_size,
      "memory in bytes for the terms, and the same for the index; more terms are spilled to disk")
      .between(1, 0x1p50)
      .bytes();
  const auto in_bm25 = f.group("BM25");
  f("k", top, "hits per unit, including the unit itself").between(1, 10e3);
  f("other-documents", other_documents, "exclude hits in the unit's own documents");
  f("k1", k1, "BM25 k1: saturation of term frequency").between(0, 1000);
  f("b", b, "BM25 b: length normalization").between(0, 1);
}

PackingData open_packing(const std::vector<std::string>& files, const PackOptions& options) {
  PackingData in{shard::Dataset(files), {}, nullptr, {}};
  const auto& header = in.data.header();
  in.unit.name = options.unit;
  if (options.unit == "auto") in.unit.name = header.kind == shard::Kind::pairs ? "pair" : "segment";
  in.unit.length = static_cast<std::uint64_t>(options.segment);
  expect_units(in.data, in.unit);
  if (header.tokenizer.empty())
    core::bad_data("{}: has no tokenizer, so its units cannot be compared as text", in.data.name());
  in.tokenizer = text::parse_tokenizer(header.tokenizer, in.data.name() + ": tokenizer");
  in.end_of_document = text::end_of_document_of(in.data, *in.tokenizer);
  if (in.units() == 0) core::bad_data("{}: has no {}", in.data.name(), in.unit.name);
  if (options.other_documents && in.data.documents().size() < 2)
    core::bad_data(
        "{}: is one document, so --other-documents has no hits; encode it with --format or "
        "--document-separator of tokenize, which separate documents",
        in.data.name());
  return in;
}

TermLists list_terms(
    const PackingData& in, const PackOptions& options, int jobs, const PackProgress& progress) {
  return list_terms(in.data, in.tokenizer, in.end_of_document, in.unit, jobs,
      static_cast<std::uint64_t>(options.buffer_size), progress);
}

void print_terms(const PackingData& in, int jobs, core::ByteSink& out) {
  std::string line;
  const auto print = [&](AnalyzedUnits& part) {
    for (const auto& list : part.lists) {
      line.clear();
      for (const auto& [term, count] : list)
        for (std::uint32_t i = 0; i < count; ++i)
          line.append(line.empty() ? "" : " ").append(part.strings[term]);
      out.write(line += '\n');
    }
  };
  analyze_units(in.data, in.tokenizer, in.end_of_document, in.unit, jobs, print);
}

core::OrderedJson Found::timings() const {
  const auto n = static_cast<double>(queries.size());
  return {{"queries", queries.size()}, {"seconds", seconds}, {"queries_per_s", n / seconds},
      {"queries_per_cpu_s", n / cpu_seconds}};
}

std::vector<std::uint32_t> queries_of(
    std::uint32_t units, const core::Part& part, std::uint64_t most, std::uint64_t seed) {
  if (most > 0) {
    auto drawn = random_order(units, seed);
    drawn.resize(std::min<std::size_t>(drawn.size(), most));
    return drawn;
  }
  const auto begin = static_cast<std::uint32_t>(part.begin(units));
  std::vector<std::uint32_t> own(static_cast<std::size_t>(part.end(units)) - begin);
  std::iota(own.begin(), own.end(), begin);
  return own;
}

Found find_hits(const PackingData& in, const Bm25& bm25, const PackOptions& options,
    std::vector<std::uint32_t> queries, int jobs, const PackProgress& progress) {
  using Clock = std::chrono::steady_clock;
  SearchOptions how;
  how.top = static_cast<std::uint32_t>(options.top);
  how.jobs = jobs;
  how.memory = static_cast<std::uint64_t>(options.buffer_size);
  std::vector<UnitRange> own;
  if (options.other_documents) own = units_of_same_documents(in.data, in.unit);
  how.without = own;
  std::uint32_t parts = 0;
  const auto start = Clock::now();
  const auto cpu_start = std::clock();
  Hits hits = search(bm25, queries, how, progress, &parts);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  return {std::move(queries), std::move(hits), parts, seconds, cpu_seconds};
}

void print_hits(const Found& found, core::ByteSink& out) {
  for (std::uint32_t q = 0; q < found.hits.queries(); ++q)
    for (const auto& [unit, score] : found.hits.of(q))
      out.write(fmt::format("{}\t{}\t{:.9g}\n", found.queries[q], unit, score));
}

core::OrderedJson Packed::figures(const std::string& name, const Bm25& bm25, bool searched,
    const core::Digest& fingerprint) const {
  core::OrderedJson json;
  json[name + "s"] = order.size();
  json["terms"] = bm25.lists().terms();
  if (searched) json["links"] = worth.links, json["jumps"] = worth.jumps;
  json["bm25_of_neighbours"] = worth.mean_score;
  json["bm25_in_random_order"] = by_chance;
  json["fingerprint"] = fingerprint.hex();
  return json;
}

std::string Packed::summary(const std::string& name, bool searched) const {
  const auto links =
      searched ? fmt::format(", {} links, {} jumps", worth.links, worth.jumps) : std::string();
  return fmt::format("{} {}s{}, mean BM25 of neighbours {:.2f}, in random order {:.2f}",
      order.size(), name, links, worth.mean_score, by_chance);
}

Packed pack(const PackingData& in, const Bm25& bm25, const Found* found, const PackOptions& options,
    std::uint64_t seed, int jobs) {
  const std::uint32_t units = bm25.lists().size();
  const UnitOrder random = random_order(units, seed);
  const Hits none(units, 1);
  Packed packed;
  if (options.method == "random") packed.order = random;
  if (options.method == "greedy") packed.order = greedy_chain(found->hits, seed);
  if (options.method == "paths") packed.order = path_cover(bm25, found->hits, jobs);
  packed.worth = worth_of(packed.order, bm25, found != nullptr ? found->hits : none);
  packed.by_chance = worth_of(random, bm25, none).mean_score;
  if (found != nullptr && packed.worth.links == 0 && units > 1)
    core::bad_data(
        "{}: no {} is a hit of another, so only a random order exists; use other units, or "
        "--method random",
        in.data.name(), in.unit.name);
  return packed;
}

core::Digest write_order(const UnitOrder& order, const PackingData& in, const PackOptions& options,
    std::uint64_t seed, core::ByteSink& out) {
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
  if (options.searches()) {
    changes["k"] = options.top;
    changes["k1"] = options.k1;
    changes["b"] = options.b;
    if (options.other_documents) changes["other_documents"] = true;
  }
  if (options.method != "paths") changes["seed"] = seed;
  shard::Writer writer(
      out, header, {shard::provenance_entry("bm25-pack", changes, {in.data.fingerprint()})});
  writer.write(std::span(order));
  writer.finish();
  return writer.fingerprint();
}

}  // namespace passages
