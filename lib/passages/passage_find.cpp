#include "passages/passage_find.h"

#include <charconv>

#include "core/file_text.h"
#include "shard/unpacked_source.h"

namespace passages {
namespace {

constexpr std::size_t kTogether = 4096;  // queries per batch

std::vector<std::uint32_t> parse_ids(
    std::string_view line, std::size_t types, const std::string& origin) {
  std::vector<std::uint32_t> ids;
  const char *at = line.data(), *const end = at + line.size();
  while (at < end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    std::uint32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next < end && *next != ' ') || id >= types)
      core::bad_data("{}: with --ids, takes token ids below {} separated by spaces", origin, types);
    ids.push_back(id);
    at = next;
  }
  return ids;
}

core::OrderedJson describe(
    const PassageIndex& index, std::uint64_t query, std::uint64_t rank, const Hit& hit) {
  const auto place = index.cuts().place(hit.unit);
  return {{"query", query}, {"rank", rank}, {"score", hit.score}, {"passage", hit.unit},
      {"document", place.document}, {"offset", place.begin - index.cuts().begin_of(place.document)},
      {"length", place.end - place.begin}, {"text", index.text(hit.unit)}};
}

}  // namespace

void FindOptions::fields(core::FieldList& f) {
  f.positional("FILE", files, "queries, one per line; stdin if - or not given");
  auto& file = f("index", index, "index, from bm25-search build");
  file.short_name = 'i', file.required = true;
  f("k", top, "passages per query").between(1, 10e3);
  f("ids", ids, "queries are token ids separated by spaces");
}

std::uint64_t find_passages(const PassageIndex& index, const FindOptions& options, int jobs,
    core::ByteSink& out, const std::function<void(std::uint64_t)>& written) {
  for (const auto& path : options.files)
    if (path != "-" && !core::exists(path))
      core::fail(core::Code::no_input,
          "{}: does not exist; a FILE has queries, one per line; pipe a single query to stdin",
          path);
  PassageQueries queries(index);
  std::uint64_t done = 0;
  for (const auto& path : core::input_paths(options.files)) {
    core::LineReader reader(shard::open_unpacked(path));
    for (bool more = true; more;) {
      std::vector<std::vector<TermCount>> terms;
      while (terms.size() < kTogether && (terms.empty() || reader.ready())) {
        const auto line = reader.next();
        if (!(more = line.has_value())) break;
        terms.push_back(options.ids ? queries.terms_of(parse_ids(
                                          *line, index.tokenizer()->size(), reader.origin()))
                                    : queries.terms_of(*line));
      }
      std::vector<Bm25Query> asked;
      for (const auto& own : terms) asked.push_back({own});
      const Hits hits = index.search(asked, static_cast<std::uint32_t>(options.top), jobs);
      for (std::uint32_t query = 0; query < hits.queries(); ++query) {
        std::uint64_t rank = 0;
        for (const auto& hit : hits.of(query))
          out.write(core::dump(describe(index, done + query, ++rank, hit)) + "\n");
      }
      done += hits.queries();
      written(done);
    }
  }
  return done;
}

}  // namespace passages
