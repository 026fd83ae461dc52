#include "passages/passage_index.h"

#include "core/file_text.h"
#include "core/parallel.h"
#include "core/units.h"
#include "passages/analysis.h"
#include "passages/pack_data.h"
#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace passages {
namespace {

bool is_share(float value) { return value >= 0 && value <= 1; }

template <class T> std::uint64_t highest_of(std::span<const std::byte> bytes) {
  const auto* const elements = reinterpret_cast<const T*>(bytes.data());
  return core::max_of(std::span(elements, bytes.size() / sizeof(T)), std::identity());
}

constexpr std::size_t kTogether = 4096;  // queries per batch

std::vector<std::uint32_t> parse_ids(
    std::string_view line, std::size_t types, const std::string& origin) {
  const auto ids = core::read_ids(line);
  if (!ids || std::ranges::any_of(*ids, [&](std::uint32_t id) { return id >= types; }))
    core::bad_data("{}: with --ids, takes token ids below {} separated by spaces", origin, types);
  return *ids;
}

core::OrderedJson describe(
    const PassageIndex& index, std::uint64_t query, std::uint64_t rank, const Hit& hit) {
  const auto place = index.cuts().place(hit.unit);
  return {{"query", query}, {"rank", rank}, {"score", hit.score}, {"passage", hit.unit},
      {"document", place.document}, {"offset", place.begin - index.cuts().begin_of(place.document)},
      {"length", place.end - place.begin}, {"text", index.text(hit.unit)}};
}

constexpr std::uint64_t kPieceTokens = std::uint64_t{1} << 20;

// Returns the bytes per token for a vocabulary size.
std::size_t token_bytes_of(std::uint64_t vocabulary) {
  return vocabulary <= 1U << 8 ? 1 : vocabulary <= 1U << 16 ? 2 : 4;
}

// Writes the tokens. Returns a hash of each document's tokens.
std::vector<std::uint64_t> write_tokens(const shard::Dataset& data, PackWriter& out) {
  const auto& ends = data.documents().end;
  std::vector<std::uint64_t> hashes;
  out.begin("tokens");
  std::vector<std::uint32_t> ids;
  std::vector<std::byte> narrow;
  const std::size_t width = token_bytes_of(data.header().vocabulary);
  std::uint64_t begin = 0;
  for (const auto end : ends) {
    core::Hasher hash;
    for (auto at = begin; at < end; at += ids.size()) {
      ids.resize(std::min(kPieceTokens, end - at));
      data.read(at, std::span(ids));
      hash.update(std::as_bytes(std::span(ids)));
      narrow.resize(ids.size() * width);
      for (std::size_t i = 0; i < ids.size(); ++i)
        std::memcpy(narrow.data() + i * width, &ids[i], width);
      out.write(std::span<const std::byte>(narrow));
    }
    hashes.push_back(hash.digest().low);
    begin = end;
  }
  return hashes;
}

void write_terms(const std::vector<std::string>& terms, PackWriter& out) {
  std::vector<std::uint64_t> ends;
  std::uint64_t end = 0;
  out.begin("term_bytes");
  for (const auto& term : terms) {
    out.write(std::span(term.data(), term.size()));
    ends.push_back(end += term.size());
  }
  std::vector<std::uint32_t> order(terms.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](auto number) -> const std::string& { return terms[number]; });
  out.add("term_ends", std::span<const std::uint64_t>(ends));
  out.add("term_order", std::span<const std::uint32_t>(order));
}

void write_blocks(const Bm25& bm25, const TermKinds& kinds, PackWriter& out) {
  const std::uint32_t units = bm25.lists().size();
  for (std::uint32_t first = 0, n = 0; first < units; first += BlockView::kUnits, ++n) {
    const IndexBlock block(bm25, kinds, first,
        static_cast<std::uint32_t>(
            std::min<std::uint64_t>(units, std::uint64_t{first} + BlockView::kUnits)));
    const BlockView view = block.view();
    const auto number = std::to_string(n);
    out.add("begin." + number, view.begin);
    out.add("units." + number, view.units);
    out.add("impacts." + number, view.impacts);
    out.add("rows." + number, view.rows);
  }
}

}  // namespace

PassageCuts::PassageCuts(std::span<const std::uint64_t> ends, std::uint64_t length)
    : ends_(ends), length_(length) {
  first_.reserve(ends.size() + 1);
  std::uint64_t begin = 0;
  for (const auto end : ends) {
    const std::uint64_t tokens = end - begin, whole = tokens > 0 ? 1 : 0;
    first_.push_back(
        first_.back() + (length == 0 ? whole : tokens / length + (tokens % length > 0 ? 1 : 0)));
    begin = end;
  }
}

PassageCuts::Place PassageCuts::place(std::uint64_t number) const {
  const auto after = std::ranges::upper_bound(first_, number);
  const auto document = static_cast<std::uint64_t>(after - first_.begin()) - 1;
  const std::uint64_t begin = begin_of(document) + (number - first_[document]) * length_,
                      end = ends_[document];
  return {document, begin, length_ == 0 || end - begin < length_ ? end : begin + length_};
}

PassageIndex::PassageIndex(
    core::MappedFile file, std::span<const std::byte> bytes, const std::string& name)
    : file_(std::move(file)), reader_(std::make_unique<PackReader>(bytes, kPassageFormat, name)) {
  read_facts();
  read_text();
  read_terms();
  read_blocks();
}

PassageIndex::PassageIndex(const std::string& path)
    : PassageIndex([&] {
        core::MappedFile file(path);
        const auto bytes = file.bytes();
        return PassageIndex(std::move(file), bytes, path);
      }()) {}

PassageIndex::PassageIndex(std::span<const std::byte> bytes, const std::string& name)
    : PassageIndex(core::MappedFile(), bytes, name) {}

void PassageIndex::damaged(const char* what) const {
  core::bad_data("{}: damaged: {}", name(), what);
}

void PassageIndex::read_facts() {
  const auto& facts = reader_->facts();
  core::expect_format(
      facts, kPassageFormatName, kPassageFormat.version, kPassageFormat.what, name());
  vocabulary_ = core::get_at_most(facts, "vocabulary", std::uint64_t{1} << 32, name());
  passage_ = core::get_at_most(facts, "passage", std::uint64_t{1} << 48, name());
  k1_ = core::get<double>(facts, "k1", name());
  b_ = core::get<double>(facts, "b", name());
  data_ = core::get<std::string>(facts, "data", name());
  const auto end = core::get<std::int64_t>(facts, "end_of_document", name());
  if (end >= 0) end_of_document_ = static_cast<std::uint32_t>(end);
  const auto json = reader_->array<char>("tokenizer");
  tokenizer_json_.assign(json.begin(), json.end());
  tokenizer_ = text::parse_tokenizer(tokenizer_json_, name() + ": tokenizer");
  if (tokenizer_->size() > vocabulary_)
    damaged("its tokenizer has more tokens than its vocabulary");
}

void PassageIndex::read_text() {
  token_bytes_ = token_bytes_of(vocabulary_);
  tokens_ = reader_->array<std::byte>("tokens");
  if (tokens_.size() % token_bytes_ != 0) damaged("it ends within a token");
  n_tokens_ = tokens_.size() / token_bytes_;
  const auto most = token_bytes_ == 1   ? highest_of<std::uint8_t>(tokens_)
                    : token_bytes_ == 2 ? highest_of<std::uint16_t>(tokens_)
                                        : highest_of<std::uint32_t>(tokens_);
  if (n_tokens_ > 0 && most >= tokenizer_->size())
    damaged("a token outside its tokenizer's vocabulary");
  ends_ = reader_->array<std::uint64_t>("documents");
  hashes_ = reader_->array<std::uint64_t>("hashes", ends_.size());
  if (ends_.size() > std::uint64_t{1} << 31) damaged("too many documents");
  if (ends_.empty() || !std::ranges::is_sorted(ends_) || ends_.back() != n_tokens_)
    damaged("not the ends of documents");
  by_hash_.resize(ends_.size());
  std::iota(by_hash_.begin(), by_hash_.end(), 0U);
  std::ranges::stable_sort(by_hash_, {}, [&](auto document) { return hashes_[document]; });
  cuts_ = PassageCuts(ends_, passage_);
  if (cuts_.size() == 0 || cuts_.size() > std::uint64_t{1} << 31) damaged("too many passages");
}

void PassageIndex::read_terms() {
  idf_ = reader_->array<float>("idf");
  row_ = reader_->array<std::uint32_t>("row", idf_.size());
  term_order_ = reader_->array<std::uint32_t>("term_order", idf_.size());
  term_ends_ = reader_->array<std::uint64_t>("term_ends", idf_.size());
  term_bytes_ = reader_->array<char>("term_bytes");
  if (!std::ranges::is_sorted(term_ends_) ||
      (term_ends_.empty() ? 0 : term_ends_.back()) != term_bytes_.size())
    damaged("not the ends of terms");
  for (const auto number : term_order_)
    if (number >= idf_.size()) damaged("not an order of terms");
  for (const float idf : idf_)
    if (!(idf >= 0 && idf < 100)) damaged("an impossible idf");
}

void PassageIndex::read_blocks() {
  std::uint64_t rows = 0;  // all of them have a term
  for (const auto row : row_) rows += row != TermKinds::kSparse;
  for (const auto row : row_)
    if (row != TermKinds::kSparse && row >= rows) damaged("a row out of range");
  for (std::uint64_t first = 0; first < size(); first += BlockView::kUnits) {
    const auto number = std::to_string(first / BlockView::kUnits);
    const auto units = std::min<std::uint64_t>(BlockView::kUnits, size() - first);
    BlockView block;
    block.first = static_cast<std::uint32_t>(first);
    block.tiles = static_cast<std::uint32_t>((units + kTile - 1) / kTile);
    block.tile_floats = rows * kTile;
    block.begin = reader_->array<std::uint32_t>("begin." + number, idf_.size() + 1);
    block.units = reader_->array<std::uint16_t>("units." + number);
    block.impacts = reader_->array<float>("impacts." + number, block.units.size());
    block.rows = reader_->array<float>("rows." + number, block.tiles * block.tile_floats);
    if (!std::ranges::is_sorted(block.begin) || block.begin.front() != 0 ||
        block.begin.back() != block.units.size())
      damaged("not the starts of postings");
    if (!std::ranges::all_of(block.units, [&](std::uint16_t unit) { return unit < units; }))
      damaged("a posting of no passage");
    if (!std::ranges::all_of(block.impacts, is_share) || !std::ranges::all_of(block.rows, is_share))
      damaged("an impossible impact");
    // The columns after the last passage pad its tile and are not passages.
    for (std::uint64_t row = 0; row < rows && units % kTile != 0; ++row)
      for (std::size_t j = units % kTile; j < kTile; ++j)
        if (block.tile(block.tiles - 1)[row * kTile + j] != 0) damaged("a row of no passage");
    blocks_.push_back(block);
  }
}

std::uint32_t PassageIndex::token(std::uint64_t at) const {
  std::uint32_t id = 0;
  std::memcpy(&id, tokens_.data() + at * token_bytes_, token_bytes_);
  return id;
}

std::vector<std::uint32_t> PassageIndex::passage(std::uint32_t number, std::uint64_t most) const {
  const auto place = cuts_.place(number);
  std::vector<std::uint32_t> out;
  for (auto at = place.begin; at < place.end && out.size() < most; ++at)
    if (const auto id = token(at); id != end_of_document_) out.push_back(id);
  return out;
}

std::string PassageIndex::text(std::uint32_t number) const {
  return tokenizer_->decode(passage(number));
}

std::vector<UnitRange> PassageIndex::same_document(std::span<const std::uint32_t> tokens) const {
  const auto hash = core::hash128(std::as_bytes(tokens)).low;
  std::vector<UnitRange> ranges;
  const auto hash_of = [&](std::uint32_t document) { return hashes_[document]; };
  auto at = std::ranges::lower_bound(by_hash_, hash, {}, hash_of);
  for (; at != by_hash_.end() && hash_of(*at) == hash; ++at) {
    const std::uint64_t document = *at;
    const std::uint64_t begin = cuts_.begin_of(document);
    if (ends_[document] - begin != tokens.size()) continue;
    bool same = true;
    for (std::size_t i = 0; same && i < tokens.size(); ++i) same = token(begin + i) == tokens[i];
    const auto [first, last] = cuts_.of(document);
    if (same)
      ranges.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)});
  }
  return ranges;
}

bool PassageIndex::is_special(std::uint32_t id) const {
  return std::ranges::binary_search(tokenizer_->special_tokens(), id, {}, &text::SpecialToken::id);
}

std::string_view PassageIndex::term_text(std::uint32_t number) const {
  const std::uint64_t begin = number == 0 ? 0 : term_ends_[number - 1];
  return {term_bytes_.data() + begin, term_ends_[number] - begin};
}

std::optional<std::uint32_t> PassageIndex::term(std::string_view text) const {
  const auto at = std::ranges::lower_bound(
      term_order_, text, {}, [&](auto number) { return term_text(number); });
  if (at == term_order_.end() || term_text(*at) != text) return std::nullopt;
  return *at;
}

Hits PassageIndex::search(std::span<const Bm25Query> queries, std::uint32_t top, int jobs) const {
  constexpr std::size_t kBatch = BlockSearcher::kBatch;
  Hits hits(static_cast<std::uint32_t>(queries.size()), top);
  core::parallel_for(jobs, (queries.size() + kBatch - 1) / kBatch, [&] {
    auto own = std::make_shared<BlockSearcher>(idf_, row_, top);
    return [&, own](std::uint64_t i) {
      const auto batch = queries.subspan(i * kBatch, std::min(kBatch, queries.size() - i * kBatch));
      own->search(blocks_, batch, static_cast<std::uint32_t>(i * kBatch), hits);
    };
  });
  return hits;
}

struct PassageQueries::Impl {
  const PassageIndex& index;
  Analyzer analyzer = {};
  text::StreamDecoder decoder;
  std::vector<std::optional<std::uint32_t>> numbers = {};  // of the analyzer's terms in the index
  std::vector<std::uint32_t> found = {};
  std::string text = {};
};

PassageQueries::PassageQueries(const PassageIndex& index)
    : impl_(new Impl{index, {}, text::StreamDecoder(index.tokenizer())}) {}
PassageQueries::~PassageQueries() = default;
PassageQueries::PassageQueries(PassageQueries&&) noexcept = default;

std::vector<TermCount> PassageQueries::terms_of(std::string_view text) {
  Impl& own = *impl_;
  own.found.clear();
  own.analyzer.analyze(text, own.found);
  for (auto number = own.numbers.size(); number < own.analyzer.size(); ++number)
    own.numbers.push_back(own.index.term(own.analyzer.term(static_cast<std::uint32_t>(number))));
  std::ranges::sort(own.found);
  std::vector<TermCount> terms;
  for (std::size_t i = 0, next = 0; i < own.found.size(); i = next) {
    while (next < own.found.size() && own.found[next] == own.found[i]) ++next;
    if (const auto number = own.numbers[own.found[i]])
      terms.push_back({*number, static_cast<std::uint32_t>(next - i)});
  }
  std::ranges::sort(terms, {}, &TermCount::term);
  return terms;
}

std::vector<TermCount> PassageQueries::terms_of(std::span<const std::uint32_t> tokens) {
  Impl& own = *impl_;
  own.text.clear();
  own.decoder.restart();
  for (const auto id : tokens) {
    if (id == own.index.end_of_document() || own.index.is_special(id)) {
      own.text += ' ';
    } else {
      own.decoder.push(id, own.text);
    }
  }
  return terms_of(std::string_view(own.text));
}

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

void PassageOptions::fields(core::FieldList& f) {
  f("passage", passage, "tokens per passage; none: one passage per document").none_or(1, 1e9);
  f("buffer-size", buffer_size, "memory in bytes for the terms; more are spilled to disk")
      .bytes(1, 0x1p50);
  f("k1", k1, "BM25 k1: saturation of term frequency").between(0, 1000);
  f("b", b, "BM25 b: length normalization").between(0, 1);
}

void write_passages(const std::vector<std::string>& files, const PassageOptions& options, int jobs,
    const std::function<void(std::uint64_t)>& progress, core::ByteSink& out) {
  const shard::Dataset data(files);
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  const auto tokenizer = text::tokenizer_of(data);
  const auto end = text::end_of_document_of(data, *tokenizer);
  const PackingUnit unit{"passage", static_cast<std::uint64_t>(options.passage)};
  if (count_units(data, unit) == 0) core::bad_data("{}: has no passage", data.name());
  std::vector<std::string> terms;
  const TermLists lists = list_terms(data, tokenizer, end, unit, jobs,
      static_cast<std::uint64_t>(options.buffer_size), progress, &terms);
  if (terms.empty()) core::bad_data("{}: has no passage with a searchable word", data.name());
  const Bm25 bm25(lists, {options.k1, options.b});
  const TermKinds kinds(lists);

  PackWriter pack(out, kPassageFormat);
  const auto hashes = write_tokens(data, pack);
  pack.add("documents", std::span<const std::uint64_t>(data.documents().end));
  pack.add("hashes", std::span<const std::uint64_t>(hashes));
  write_terms(terms, pack);
  pack.add("idf", bm25.idf());
  pack.add("row", kinds.row_of_terms());
  pack.add("tokenizer", std::span(data.header().tokenizer.data(), data.header().tokenizer.size()));
  write_blocks(bm25, kinds, pack);
  pack.finish({{"format", kPassageFormatName}, {"version", kPassageFormat.version},
      {"vocabulary", data.header().vocabulary},
      {"end_of_document", end ? static_cast<std::int64_t>(*end) : -1}, {"passage", options.passage},
      {"k1", options.k1}, {"b", options.b}, {"data", data.fingerprint().hex()}});
}

core::OrderedJson describe(const PassageIndex& index) {
  return {{"index", index.name()}, {"passages", index.size()}, {"documents", index.documents()},
      {"tokens", index.tokens()}, {"terms", index.terms()}, {"passage", index.passage_length()},
      {"k1", index.k1()}, {"b", index.b()}, {"data", index.data()}};
}

}  // namespace passages
