#include "passages/hits_file.h"

#include "shard/layout.h"
#include "shard/reader.h"

namespace passages {
namespace {

using shard::layout::get;
using shard::layout::put;

constexpr const char* kOther = "other_documents";
constexpr std::string_view kMagic = "TESSHITS";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFrontBytes = 16, kMostJson = 1 << 12, kHitBytes = 8, kDigestBytes = 16;
constexpr std::uint64_t kMostParts = 1 << 20;

core::OrderedJson to_json(const SearchOf& of) {
  return {{"data", of.data}, {"unit", of.unit}, {"segment", of.unit_length}, {"units", of.units},
      {"k", of.top}, {"k1", of.k1}, {"b", of.b}, {kOther, of.other_documents}};
}

core::Bytes take(shard::Input& in, std::size_t n) {
  auto bytes = in.take(n);
  if (bytes.size() < n) core::bad_data("{}: cut short at byte {}", in.name(), in.offset());
  return bytes;
}

core::Part read_front(shard::Input& in, const SearchOf& of) {
  const auto start = in.peek(kFrontBytes);
  if (start.size() < kFrontBytes || std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0)
    core::bad_data("{}: not a file of bm25-pack --part", in.name());
  if (const auto version = get<std::uint32_t>(start, 8); version != kVersion)
    core::bad_data("{}: format version {} is not supported; this program reads version {}",
        in.name(), version, kVersion);
  const auto json_bytes = get<std::uint32_t>(start, 12);
  if (json_bytes > kMostJson)
    core::bad_value(
        in.name(), "the length of its JSON", json_bytes, fmt::format("0 to {}", kMostJson));
  in.consume(kFrontBytes);
  const auto text = take(in, json_bytes);
  const core::Json json =
      core::parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, in.name(), 4);
  core::Part part;
  const auto parts = core::get_at_most(json, "parts", kMostParts, in.name(), 1);
  part.count = static_cast<std::int64_t>(parts);
  part.index = static_cast<std::int64_t>(core::get_at_most(json, "part", parts, in.name(), 1)) - 1;
  const auto searched = to_json(of);
  for (const auto& [key, now] : searched.items())
    if (const auto was = json.value(key, key == kOther ? core::Json(false) : core::Json());
        was != core::Json(now))
      core::bad_usage("{}: contains the hits of another search: {} {}, now {}", in.name(), key,
          core::dump(was), core::dump(now));
  return part;
}

// Checks that hits are sorted best first, without duplicates.
bool possible(std::span<const Hit> best, std::uint32_t units) {
  const auto fits = [&](const Hit& hit) {
    return hit.unit < units && std::isfinite(hit.score) && hit.score > 0;
  };
  const auto falls = [](const Hit& a, const Hit& b) { return !(a < b); };
  return std::ranges::all_of(best, fits) && std::ranges::adjacent_find(best, falls) == best.end();
}

}  // namespace

void HitsOptions::fields(core::FieldList& f) {
  const auto in_other_jobs = f.group("Other jobs");
  f("dump", dump, "print the terms or the hits of each unit instead of writing an order",
      {"terms", "hits"});
  f("queries", queries, "with --dump hits: number of randomly chosen units; none: all")
      .none_or(1, 1e12);
  f("timings", timings, "file for the timings: seconds and rates of the search");
  const auto in_parts = f.group("Parts");
  f("part", part,
      "I/N: search for the hits of the I-th of N parts of the units, for --hits; launcher: I/N of "
      "this task of srun or a job array");
  f("hits", files, "output of --part, which replaces the search; repeat for each part");
}

void HitsOptions::check(bool searches) const {
  if (queries > 0 && dump != "hits") core::bad_usage("--queries: requires --dump hits");
  if (!core::is_part(part) && !joins()) return;
  core::part(part);  // throws if it is invalid
  if (core::is_part(part) && joins()) core::bad_usage("--hits: cannot be combined with --part");
  const char* const mine = joins() ? "hits" : "part";
  if (!dump.empty()) core::bad_usage("--{}: cannot be combined with --dump", mine);
  if (!searches) core::bad_usage("--{}: cannot be combined with --method random", mine);
  if (joins() && !timings.empty())
    core::bad_usage("--timings: cannot be combined with --hits, which replaces the search");
}

SearchOf search_of(const PackingData& in, const PackOptions& options) {
  return {.data = in.data.fingerprint().hex(),
      .unit = in.unit.name,
      .unit_length = in.unit.name == "segment" ? in.unit.length : 0,
      .units = static_cast<std::uint32_t>(in.units()),
      .top = static_cast<std::uint32_t>(options.top),
      .k1 = options.k1,
      .b = options.b,
      .other_documents = options.other_documents};
}

void write_hits(const SearchOf& of, const core::Part& part, const Hits& hits, core::ByteSink& out) {
  core::OrderedJson json{{"part", part.index + 1}, {"parts", part.count}};
  json.update(to_json(of));
  const std::string text = core::dump(json);
  core::Hasher hasher;
  core::Bytes bytes;
  const auto write = [&] {
    hasher.update(bytes);
    out.write(bytes);
    bytes.clear();
  };
  put(bytes, kMagic);
  put(bytes, kVersion);
  put(bytes, static_cast<std::uint32_t>(text.size()));
  put(bytes, text);
  for (std::uint32_t query = 0; query < hits.queries(); ++query) {
    const auto best = hits.of(query);
    put(bytes, static_cast<std::uint32_t>(best.size()));
    for (const auto& [unit, score] : best) {
      put(bytes, unit);
      put(bytes, std::bit_cast<std::uint32_t>(score));
    }
    write();
  }
  write();
  put(bytes, hasher.digest());
  out.write(bytes);
}

core::Part read_hits(core::ByteSource& source, const SearchOf& of, Hits& all) {
  shard::Input in(source);
  const core::Part part = read_front(in, of);
  std::vector<Hit> best;
  for (auto unit = part.begin(of.units); unit < part.end(of.units); ++unit) {
    const auto count = get<std::uint32_t>(take(in, 4), 0);
    if (count > all.top())
      core::bad_value(in.name(), fmt::format("the number of hits of unit {}", unit), count,
          fmt::format("0 to {}", all.top()));
    const auto bytes = take(in, count * kHitBytes);
    best.clear();
    for (std::size_t at = 0; at < bytes.size(); at += kHitBytes)
      best.push_back({get<std::uint32_t>(bytes, at), get<float>(bytes, at + 4)});
    if (!possible(best, of.units))
      core::bad_data("{}: damaged: unit {} has impossible hits", in.name(), unit);
    all.set(static_cast<std::uint32_t>(unit), best);
  }
  const auto hash = in.hash();
  const auto said = take(in, kDigestBytes);
  if (hash != core::Digest{get<std::uint64_t>(said, 8), get<std::uint64_t>(said, 0)})
    core::bad_data("{}: corrupt file: checksum mismatch", in.name());
  if (!in.peek(1).empty()) core::bad_data("{}: has data after its end", in.name());
  return part;
}

SearchedHits join_hits(
    const std::vector<std::string>& paths, const PackingData& in, const PackOptions& options) {
  const SearchOf of = search_of(in, options);
  SearchedHits found{{}, Hits(of.units, of.top)};
  core::PartNames names;
  for (const auto& path : paths) {
    const auto source = core::open_source(path);
    const core::Part part = read_hits(*source, of, found.hits);
    if (!names.empty() && part.count != names.count())
      core::bad_usage("{}: is one of {} parts, but {} is one of {}", path, part.count, names.any(),
          names.count());
    names.add(part, path);
  }
  names.expect_all("hits");
  return found;
}

}  // namespace passages
