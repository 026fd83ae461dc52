#include "text/documents/decode_documents.h"

#include "core/plain_text.h"
#include "shard/reader.h"
#include "text/formats/tokenizer_json.h"

namespace text {
namespace {

// Prints elements, `per_line` on each line.
template <class T>
void print_lines(std::span<const T> elements, std::size_t per_line, core::Output& out) {
  fmt::memory_buffer text;
  for (std::size_t i = 0; i < elements.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}", elements[i],
        (i + 1) % per_line == 0 || i + 1 == elements.size() ? '\n' : ' ');
  out.write(std::string_view(text.data(), text.size()));
}

// Calls take(rows) with up to `rows` rows of vectors, or elements, of `width` Ts, and returns how
// many are left.
template <class T, class Take>
std::uint64_t each_row(
    shard::Reader& reader, std::uint64_t rows, std::size_t width, const Take& take) {
  std::vector<T> buffer(std::max<std::size_t>(1, (1 << 16) / width) * width);
  while (rows > 0) {
    const std::size_t want = std::min<std::uint64_t>(rows, buffer.size() / width) * width;
    const std::size_t n = reader.read(std::span(buffer).first(want));
    if (n == 0) break;
    take(std::span<const T>(buffer).first(n));
    rows -= n / width;
  }
  return rows;
}

// Prints elements of type T.
template <class T>
void print_typed_documents(const shard::Dataset& data, std::uint64_t count, core::Output& out) {
  std::vector<T> elements;
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < data.documents().size() && i < count; ++i) {
    const std::uint64_t end = data.documents().end[i];
    elements.resize(static_cast<std::size_t>(end - start));
    data.read(start, std::span(elements));
    print_lines(std::span<const T>(elements), std::max<std::size_t>(1, elements.size()), out);
    if (elements.empty()) out.write("\n");
    start = end;
  }
}

// Prints the elements of each of the first `count` documents on one line.
void print_documents(const shard::Dataset& data, std::uint64_t count, core::Output& out) {
  data.header().dtype == shard::Dtype::f32 ? print_typed_documents<float>(data, count, out)
                                           : print_typed_documents<std::uint64_t>(data, count, out);
}

// Prints the text of the first `count` documents, each followed by a newline. Throws
// Error{bad_data} for a shard without a tokenizer and for a kind without text.
void print_text(const shard::Dataset& data, std::uint64_t count, core::Output& out) {
  shard::expect_kind(data.header(), {shard::Kind::tokens, shard::Kind::pairs}, data.name());
  if (data.header().tokenizer.empty())
    core::bad_data("{}: has no tokenizer; --by-document prints ids", data.name());
  const auto tokenizer = parse_tokenizer(data.header().tokenizer, data.name());
  const auto end_of_document = end_of_document_of(data, *tokenizer);
  StreamDecoder decoder(tokenizer);
  std::vector<std::uint32_t> ids;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < data.documents().size() && i < count; ++i) {
    decoder.restart();
    bool line_ended = false;
    while (at < data.documents().end[i]) {
      ids.resize(std::min<std::uint64_t>(data.documents().end[i] - at, 1 << 16));
      data.read(at, std::span(ids));
      at += ids.size();
      std::string text;
      for (const auto id : ids)
        if (id != end_of_document) decoder.push(id, text);
      out.write(text);
      if (!text.empty()) line_ended = text.back() == '\n';
    }
    if (!line_ended) out.write("\n");
  }
}

}  // namespace

void decode_documents(const shard::Dataset& data, const TokenizerPtr& tokenizer,
    const DocumentOptions& options, std::optional<std::uint32_t> end_of_document,
    core::ByteSink& out, const std::function<void(std::uint64_t)>& progress) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 18;
  const bool json = options.format == Format::jsonl;
  const bool by_newline = options.format == Format::lines || options.format == Format::wikitext;
  const std::string after = by_newline ? "\n" : options.separator;
  StreamDecoder decoder(tokenizer);
  std::vector<std::uint32_t> ids;
  std::string text;
  const auto& ends = data.documents().end;
  std::uint64_t at = 0, chunk_start = 0;
  for (std::size_t d = 0; d < std::max<std::size_t>(ends.size(), 1); ++d) {
    const std::uint64_t end = d < ends.size() ? ends[d] : data.size();
    decoder.restart();
    for (; at < end; ++at) {
      if (at == chunk_start + ids.size()) {
        chunk_start = at;
        ids.resize(std::min(kChunk, data.size() - at));
        data.read(at, ids);
        progress(at);
      }
      const std::uint32_t id = ids[at - chunk_start];
      if (id != end_of_document) decoder.push(id, text);
      if (!json && text.size() >= kChunk) {
        out.write(text);
        text.clear();
      }
    }
    if (d >= ends.size()) break;
    if (json) {
      core::OrderedJson line;
      line[options.field] = text;
      out.write(core::dump(line));
      out.write("\n");
      text.clear();
    } else {
      text += after;
    }
  }
  out.write(text);
}

TokenizerPtr tokenizer_of(const shard::Dataset& data, const std::string& given) {
  const std::string& stored = data.header().tokenizer;
  if (given.empty()) return parse_tokenizer(stored, data.name() + ": tokenizer");
  auto tokenizer = load_tokenizer(given);
  if (!stored.empty() && tokenizer->json() != stored)
    core::bad_data(
        "{}: was encoded by another tokenizer (fingerprint {}) than {} ({}); leave -t out to use "
        "its own",
        data.name(), core::hash128(stored).hex(), given, tokenizer->fingerprint().hex());
  return tokenizer;
}

std::optional<std::uint32_t> end_of_document_of(
    const shard::Dataset& data, const Tokenizer& tokenizer) {
  for (const auto& entry : data.provenance()) {
    const auto options = entry.find("options");
    if (options == entry.end() || !options->is_object()) continue;
    const auto name = options->find("end_of_document");
    if (name == options->end()) continue;
    return name->is_string() ? tokenizer.id_of(name->get<std::string>()) : std::nullopt;
  }
  return tokenizer.end_of_document();
}

ShardText::ShardText(
    const std::vector<std::string>& files, const std::string& given, TextOptions options)
    : data_(files), options_(std::move(options)) {
  shard::expect_kind(data_.header(), {shard::Kind::tokens, shard::Kind::pairs}, data_.name());
  tokenizer_ = tokenizer_of(data_, given);
  const auto& name = options_.end_of_document;
  end_of_document_ =
      name.empty() ? end_of_document_of(data_, *tokenizer_) : end_of_document_id(*tokenizer_, name);
}

void ShardText::write(
    core::ByteSink& out, const std::function<void(std::uint64_t)>& progress) const {
  decode_documents(data_, tokenizer_, options_.documents(), end_of_document_, out, progress);
}

void print_elements(
    const std::vector<std::string>& paths, std::uint64_t count, bool raw, core::Output& out) {
  for (const auto& path : paths) {
    const auto source = core::open_source(path);
    shard::Reader reader(*source);
    const std::size_t width = reader.header().width, bytes = shard::size_of(reader.header().dtype);
    const auto print = [&](auto rows) { print_lines(rows, width, out); };
    const auto write = [&](std::span<const std::byte> rows) { out.write(rows); };
    count = raw ? each_row<std::byte>(reader, count, width * bytes, write)
            : reader.header().dtype == shard::Dtype::f32
                ? each_row<float>(reader, count, width, print)
                : each_row<std::uint64_t>(reader, count, width, print);
  }
}

void PrintOptions::fields(core::FieldList& f) {
  if (!whole)
    f("count", count,
        "number of elements or rows; with --by-document, --text or --names, of documents")
        .between(0, 1e12)
        .short_name = 'n';
  f("by-document", documents, "print one document per line");
  f("text", text, "print the text of each document, decoded by the shard's tokenizer");
  f("names", names, "print the name of each document, one per line; empty if it has no name");
  f("raw", raw, "print the elements in binary form, little-endian");
}

void print(const std::vector<std::string>& paths, const PrintOptions& options, core::Output& out) {
  if (options.raw + options.documents + options.text + options.names > 1)
    core::bad_usage("--raw, --by-document, --text and --names exclude each other");
  const auto count = options.whole ? UINT64_MAX : static_cast<std::uint64_t>(options.count);
  if (options.names) {
    const shard::Dataset data(paths);
    for (std::size_t i = 0; i < data.documents().size() && i < count; ++i)
      out.write(core::printable(data.documents().name(i)) + "\n");
  } else if (options.text) {
    print_text(shard::Dataset(paths), count, out);
  } else if (options.documents) {
    print_documents(shard::Dataset(paths), count, out);
  } else {
    print_elements(paths, count, options.raw, out);
  }
}

}  // namespace text
