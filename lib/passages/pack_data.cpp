#include "passages/pack_data.h"

#include <chrono>
#include <ctime>

#include "core/parallel.h"
#include "passages/analysis.h"
#include "passages/passage_index.h"
#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace passages {
namespace {

constexpr std::uint64_t kPartTokens = std::uint64_t{1} << 16;  // fewer only where the data end

// Iterates over the units' element ranges.
class Extents {
 public:
  Extents(const shard::Dataset& data, const PackingUnit& unit) : data_(data), unit_(unit) {
    if (unit.name == "passage") passages_ = PassageCuts(data.documents().end, unit.length);
  }
  std::uint64_t count() const {
    if (unit_.name == "passage") return passages_.size();
    const auto documents = std::max<std::uint64_t>(data_.documents().size(), data_.size() > 0);
    if (unit_.name == "segment") return (data_.size() + unit_.length - 1) / unit_.length;
    return unit_.name == "pair" ? documents / 2 : documents;
  }
  std::uint64_t begin(std::uint64_t unit) const {
    if (unit_.name == "passage") return passages_.place(unit).begin;
    if (unit_.name == "segment") return unit * unit_.length;
    return document_end(unit_.name == "pair" ? 2 * unit : unit - 1);
  }
  std::uint64_t end(std::uint64_t unit) const {
    if (unit_.name == "passage") return passages_.place(unit).end;
    if (unit_.name == "segment") return std::min(data_.size(), (unit + 1) * unit_.length);
    return document_end(unit_.name == "pair" ? 2 * unit + 1 : unit);
  }

 private:
  // -1: the start of the data.
  std::uint64_t document_end(std::uint64_t document) const {
    const auto& ends = data_.documents().end;
    if (document == ~std::uint64_t{0}) return 0;
    return document < ends.size() ? ends[document] : data_.size();
  }
  const shard::Dataset& data_;
  const PackingUnit& unit_;
  PassageCuts passages_;
};

// Converts tokens to terms, one object per worker.
class UnitAnalyzer {
 public:
  UnitAnalyzer(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
      std::optional<std::uint32_t> end_of_document)
      : data_(data), decoder_(tokenizer), end_of_document_(end_of_document) {}

  void analyze(
      const Extents& extents, std::uint64_t first, std::uint64_t last, AnalyzedUnits& out) {
    out.strings.clear();
    out.lists.resize(last - first);
    ++part_;
    for (std::uint64_t unit = first; unit < last; ++unit) {
      terms_.clear();
      read(extents.begin(unit), extents.end(unit));
      analyzer_.analyze(text_, terms_);
      count(out.strings, out.lists[unit - first]);
    }
  }

 private:
  // A term's index in this part and in this unit.
  struct Place {
    std::uint64_t part = 0;
    std::uint32_t in_part = 0;
    std::uint32_t in_list = 0;  // index of its entry, verified against the list itself
  };

  void read(std::uint64_t begin, std::uint64_t end) {
    text_.clear();
    decoder_.restart();
    ids_.resize(end - begin);
    data_.read(begin, std::span(ids_));
    for (const auto id : ids_)
      if (id != end_of_document_) decoder_.push(id, text_);
  }

  void count(std::vector<std::string>& strings, std::vector<TermCount>& list) {
    list.clear();
    places_.resize(analyzer_.size());
    for (const auto term : terms_) {
      Place& place = places_[term];
      if (place.part != part_) {
        place = {part_, static_cast<std::uint32_t>(strings.size()), 0};
        strings.push_back(analyzer_.term(term));
      }
      if (place.in_list < list.size() && list[place.in_list].term == place.in_part) {
        ++list[place.in_list].count;
      } else {
        place.in_list = static_cast<std::uint32_t>(list.size());
        list.push_back({place.in_part, 1});
      }
    }
  }

  const shard::Dataset& data_;
  text::StreamDecoder decoder_;
  std::optional<std::uint32_t> end_of_document_;
  Analyzer analyzer_;
  std::vector<std::uint32_t> ids_, terms_;
  std::string text_;
  std::vector<Place> places_;
  std::uint64_t part_ = 0;
};

// Decodes and analyses the units (analysis.h) and passes them to `take` in parts, in order, and
// independently of `jobs`. `end_of_document` is not text.
void analyze_units(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    const std::function<void(AnalyzedUnits&)>& take) {
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  const Extents extents(data, unit);
  const std::uint64_t n = extents.count();
  std::uint64_t next = 0;
  const auto read = [&](Range& range) {
    if (next == n) return false;
    range.first = next;
    const std::uint64_t begin = extents.begin(next);
    do { ++next; } while (next < n && extents.end(next) - begin <= kPartTokens);
    range.second = next;
    return true;
  };
  const auto make_work = [&] {
    auto worker = std::make_shared<UnitAnalyzer>(data, tokenizer, end_of_document);
    return [&, worker](Range& range, AnalyzedUnits& out) {
      worker->analyze(extents, range.first, range.second, out);
    };
  };
  core::work_in_order<Range, AnalyzedUnits>(jobs, read, make_work, take);
}

// Throws Error{usage} unless the data has such units.
void expect_units(const shard::Dataset& data, const PackingUnit& unit) {
  const auto kind = data.header().kind;
  shard::expect_kind(data.header(), {shard::Kind::tokens, shard::Kind::pairs}, data.name());
  if ((kind == shard::Kind::pairs) != (unit.name == "pair"))
    core::bad_usage("{}: contains {}, not {}s; use --unit {}", data.name(), name_of(kind),
        unit.name, kind == shard::Kind::pairs ? "pair" : "segment");
}

}  // namespace

std::uint64_t count_units(const shard::Dataset& data, const PackingUnit& unit) {
  return Extents(data, unit).count();
}

std::vector<UnitRange> units_of_same_documents(
    const shard::Dataset& data, const PackingUnit& unit) {
  const Extents extents(data, unit);
  const auto& ends = data.documents().end;
  const auto n = static_cast<std::uint32_t>(extents.count());
  std::vector<UnitRange> same(n);
  for (std::uint32_t i = 0; i < n; ++i) same[i] = {i, i + 1};
  if (unit.name != "segment" && unit.name != "passage") return same;
  std::uint32_t first = 0;  // first unit that has a token of the document or of what follows
  std::uint64_t begin = 0;
  for (const auto end : ends) {
    if (end == begin) continue;
    while (extents.end(first) <= begin) ++first;
    std::uint32_t last = first + 1;
    while (last < n && extents.begin(last) < end) ++last;
    for (std::uint32_t i = first; i < last; ++i) {
      same[i].begin = std::min(same[i].begin, first);
      same[i].end = std::max(same[i].end, last);
    }
    begin = end;
  }
  return same;
}

TermLists list_terms(const shard::Dataset& data, const text::TokenizerPtr& tokenizer,
    std::optional<std::uint32_t> end_of_document, const PackingUnit& unit, int jobs,
    std::uint64_t memory, const std::function<void(std::uint64_t)>& progress,
    std::vector<std::string>* strings) {
  TermLists lists(memory);
  std::unordered_map<std::string, std::uint32_t> numbers;
  std::vector<std::uint32_t> number_of;
  analyze_units(data, tokenizer, end_of_document, unit, jobs, [&](AnalyzedUnits& part) {
    number_of.clear();
    for (auto& term : part.strings)
      number_of.push_back(
          numbers.try_emplace(std::move(term), static_cast<std::uint32_t>(numbers.size()))
              .first->second);
    for (auto& list : part.lists) {
      for (auto& entry : list) entry.term = number_of[entry.term];
      lists.add(list);
    }
    progress(lists.size());
  });
  lists.finish();
  if (strings != nullptr) {
    strings->resize(numbers.size());
    while (!numbers.empty()) {
      auto node = numbers.extract(numbers.begin());
      (*strings)[node.mapped()] = std::move(node.key());
    }
  }
  return lists;
}

void PackOptions::fields(core::FieldList& f) {
  f("unit", unit, "units to order; auto: pairs for a shard of pairs, else segments",
      {"auto", "segment", "document", "pair"});
  f("segment", segment, "tokens per segment").between(1, 1e9);
  f("method", method,
      "greedy: chain of nearest neighbours, as in TRIME; paths: path cover, with higher "
      "similarity and fewer jumps; random: shuffle",
      {"greedy", "paths", "random"});
  f("buffer-size", buffer_size,
      "memory in bytes for the terms, and as much for the index; further terms are spilled to disk")
      .bytes(1, 0x1p50);
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

core::OrderedJson SearchedHits::timings() const {
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

SearchedHits find_hits(const PackingData& in, const Bm25& bm25, const PackOptions& options,
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

void print_hits(const SearchedHits& found, core::ByteSink& out) {
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
  json.update({{"bm25_of_neighbours", worth.mean_score}, {"bm25_in_random_order", by_chance},
      {"fingerprint", fingerprint.hex()}});
  return json;
}

std::string Packed::summary(const std::string& name, bool searched) const {
  const auto links =
      searched ? fmt::format(", {} links, {} jumps", worth.links, worth.jumps) : std::string();
  return fmt::format("{} {}s{}, mean BM25 of neighbours {:.2f}, in random order {:.2f}",
      order.size(), name, links, worth.mean_score, by_chance);
}

Packed pack(const PackingData& in, const Bm25& bm25, const SearchedHits* found,
    const PackOptions& options, std::uint64_t seed, int jobs) {
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
  core::OrderedJson changes{{"method", options.method}, {"unit", in.unit.name}};
  if (header.unit_length > 0) changes["segment"] = header.unit_length;
  if (options.searches()) {
    changes.update({{"k", options.top}, {"k1", options.k1}, {"b", options.b}});
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
