#include "passages/passage_index_writer.h"

#include "passages/pack_data.h"
#include "text/documents/decode_documents.h"

namespace passages {
namespace {

constexpr std::uint64_t kPieceTokens = std::uint64_t{1} << 20;

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

std::size_t token_bytes_of(std::uint64_t vocabulary) {
  return vocabulary <= 1U << 8 ? 1 : vocabulary <= 1U << 16 ? 2 : 4;
}

void PassageOptions::fields(core::FieldList& f) {
  f("passage", passage, "tokens per passage; none: one passage per document")
      .between(1, 1e9)
      .or_none();
  f("buffer-size", buffer_size, "memory in bytes for the terms; more are spilled to disk")
      .between(1, 0x1p50)
      .bytes();
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
