#include "text/documents/import_tokens.h"

#include "core/units.h"
#include "shard/megatron_file.h"
#include "text/documents/encode_shard.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/utf8.h"

namespace text {
namespace {

using shard::ArrayReader;

constexpr std::size_t kPiece = 1 << 16;

// Counts the bytes and words of the unfinished document.
class SourceCounter {
 public:
  SourceCounter(const TokenizerPtr& tokenizer, std::optional<std::uint64_t> mark)
      : tokenizer_(tokenizer), mark_(mark) {
    if (tokenizer_) decoder_.emplace(tokenizer_);
  }
  void add(std::span<const std::uint64_t> ids) {
    if (!tokenizer_) return;
    text_.clear();
    for (const std::uint64_t id : ids) {
      if (id == mark_) continue;
      decoder_->push(static_cast<std::uint32_t>(id), text_);
      ++tokens_;
    }
    bytes_ += text_.size();
    words_ += count_words(text_, in_word_);
  }
  void close(shard::Writer& writer) {
    const bool tokens_are_words = tokenizer_ && tokenizer_->counts_newlines();
    writer.end_document(bytes_, tokens_are_words ? tokens_ : words_);
    bytes_ = words_ = tokens_ = 0;
    in_word_ = false;
    if (decoder_) decoder_->restart();
  }

 private:
  TokenizerPtr tokenizer_;
  std::optional<std::uint64_t> mark_;
  std::optional<StreamDecoder> decoder_;
  std::string text_;
  std::uint64_t bytes_ = 0, words_ = 0, tokens_ = 0;
  bool in_word_ = false;
};

class Importer {
 public:
  Importer(const ImportTokensOptions& options, core::ByteSink& out,
      const std::function<void(std::uint64_t)>& progress)
      : options_(options), out_(out), progress_(progress),
        mark_first_(options.mark_at == MarkAt::first), source_(options.tokenizer, options.mark) {}

  void add(const std::string& path) {
    if (const auto files = shard::megatron_input(path, options_.format)) return add_pair(*files);
    const auto source = core::open_source(path);
    ArrayReader reader(*source, options_.format);
    if (!writer_) begin(reader);
    if (reader.is_float() != (header_.kind == shard::Kind::vectors))
      core::bad_data("{}: {}, the files before it {}", reader.name(),
          reader.is_float() ? "vectors" : "ids", reader.is_float() ? "ids" : "vectors");
    reader.is_float() ? add_vectors(reader) : add_ids(reader);
    add_input(reader.hash(), reader.format());
  }

  ImportTotals finish() {
    if (open_ > 0) close();
    core::OrderedJson how{{"format", formats_}, {"end_of_document", nullptr}};
    if (options_.mark) {
      how["end_of_document"] = *options_.mark;
      if (options_.tokenizer)
        how["end_of_document"] =
            std::string(options_.tokenizer->token(static_cast<std::uint32_t>(*options_.mark)));
      how["mark"] = mark_first_ ? "first" : "last";
    }
    writer_->add_provenance(shard::provenance_entry("shard import", how, inputs_));
    writer_->finish();
    totals_.elements = writer_->elements();
    totals_.fingerprint = writer_->fingerprint();
    return totals_;
  }

 private:
  void begin(const ArrayReader& reader) {
    if (reader.is_float()) {
      header_.kind = shard::Kind::vectors;
      header_.dtype = shard::Dtype::f32;
      if (reader.row() > UINT32_MAX)
        core::bad_data("{}: vectors of {} numbers, more than the {} of a shard's rows",
            reader.name(), reader.row(), UINT32_MAX);
      header_.width = static_cast<std::uint32_t>(reader.row());
    } else {
      header_.vocabulary = options_.vocabulary;
      if (options_.tokenizer) {
        header_.vocabulary = options_.tokenizer->size();
        header_.tokenizer = options_.tokenizer->json();
      }
      if (header_.vocabulary == 0)
        core::bad_usage(
            "{}: contains ids; give their tokenizer with -t, or --vocabulary", reader.name());
      if (options_.mark && *options_.mark >= header_.vocabulary)
        core::bad_usage("--end-of-document: {} is not below the vocabulary of {}", *options_.mark,
            header_.vocabulary);
      header_.dtype = shard::dtype_for(header_.vocabulary);
    }
    writer_ = std::make_unique<shard::Writer>(
        out_, header_, std::vector<core::OrderedJson>{}, options_.jobs);
  }

  void add_vectors(ArrayReader& reader) {
    if (reader.row() != header_.width)
      core::bad_data("{}: contains vectors of {} numbers, but the files before it of {}",
          reader.name(), reader.row(), header_.width);
    std::vector<float> piece(kPiece);
    for (std::size_t n = kPiece; n == kPiece;) {
      n = reader.read(std::span(piece));
      writer_->write(std::span<const float>(piece).first(n));
      count(n);
    }
    if (open_ > 0) close();
  }

  void add_ids(ArrayReader& reader) {
    std::vector<std::uint64_t> piece(kPiece);
    std::uint64_t at = 0;  // in the file
    for (std::size_t n = kPiece; n == kPiece; at += n) {
      n = reader.read(std::span(piece));
      const auto ids = std::span<const std::uint64_t>(piece).first(n);
      check(ids, reader.name(), at);
      if (reader.row() > 0) {
        cut_rows(ids, reader.row());
      } else if (options_.mark) {
        if (done_ == 0 && n > 0 && options_.mark_at == MarkAt::by_data)
          mark_first_ = ids[0] == *options_.mark;
        cut_at_marks(ids);
      } else {
        take(ids);
      }
    }
    if (!options_.mark && open_ > 0) close();
  }

  void add_pair(const shard::MegatronFiles& files) {
    const core::RandomFile bytes(files.index);
    shard::MegatronIndex index(bytes);
    const auto source = core::open_source(files.numbers);
    ArrayReader reader(*source, index.type(), index.elements());
    if (!writer_) begin(reader);
    if (header_.kind == shard::Kind::vectors)
      core::bad_data("{}: contains ids, but the files before it contain vectors", reader.name());
    if (open_ > 0) close();
    std::vector<std::uint64_t> piece(kPiece);
    std::uint64_t at = 0;  // in the file
    while (const auto length = index.next_document()) {
      for (std::uint64_t left = *length; left > 0;) {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPiece));
        const auto ids = std::span(piece).first(n);
        reader.read(ids);
        check(ids, reader.name(), at);
        take(ids);
        left -= n;
        at += n;
      }
      close();
    }
    reader.read(std::span(piece).first(1));  // checks for the end
    totals_.joined += index.sequences() - std::min(index.sequences(), index.documents());
    add_input(index.hash(), reader.format());
    add_input(reader.hash(), reader.format());
  }

  void check(std::span<const std::uint64_t> ids, const std::string& name, std::uint64_t at) const {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] >= header_.vocabulary)
        core::bad_data("{}: id {} at position {} is not below the vocabulary size {}", name, ids[i],
            at + i, header_.vocabulary);
  }

  void add_input(const core::Digest& hash, shard::ArrayFormat format) {
    inputs_.push_back(hash);
    formats_.emplace_back(shard::name_of(format));
  }

  void cut_rows(std::span<const std::uint64_t> ids, std::uint64_t row) {
    while (!ids.empty()) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(row - open_, ids.size()));
      take(ids.first(n));
      ids = ids.subspan(n);
      if (open_ == row) close();
    }
  }

  void cut_at_marks(std::span<const std::uint64_t> ids) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != *options_.mark) continue;
      const std::size_t end = mark_first_ ? i : i + 1;
      take(ids.subspan(begin, end - begin));
      begin = end;
      if (open_ > 0) close();
    }
    take(ids.subspan(begin));
  }

  void take(std::span<const std::uint64_t> ids) {
    writer_->write(ids);
    source_.add(ids);
    count(ids.size());
  }
  void count(std::size_t n) {
    open_ += n;
    done_ += n;
    progress_(done_);
  }
  void close() {
    source_.close(*writer_);
    ++totals_.documents;
    open_ = 0;
  }

  const ImportTokensOptions& options_;
  core::ByteSink& out_;
  const std::function<void(std::uint64_t)>& progress_;
  bool mark_first_;
  SourceCounter source_;
  shard::Header header_;
  std::unique_ptr<shard::Writer> writer_;
  std::uint64_t open_ = 0, done_ = 0;  // numbers of the open document, of all
  ImportTotals totals_;
  std::vector<core::Digest> inputs_;
  std::vector<std::string> formats_;
};

}  // namespace

ImportTotals import_tokens(const std::vector<std::string>& paths,
    const ImportTokensOptions& options, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress) {
  const auto sources = core::input_paths(paths);
  Importer importer(options, out, progress);
  for (const auto& path : sources) importer.add(path);
  return importer.finish();
}

void ImportRequest::fields(core::FieldList& f) {
  f("format", format,
      "format of the input; auto: llm.c, npy or Megatron's .idx, by the file's first bytes",
      {"auto", "llm.c", "nanogpt", "npy", "megatron"});
  f("tokenizer", tokenizer, "tokenizer of the ids: tokenizer.json, or `bytes`").short_name = 't';
  f("vocabulary", vocabulary,
      "vocabulary size, if there is no tokenizer; every id must be below it; auto: the tokenizer's")
      .auto_or(1, 4e9);
  f("end-of-document", end_of_document,
      "token that separates documents, or none; without a tokenizer, its id [the tokenizer's]");
  f("mark", mark,
      "position of the --end-of-document token in a document; auto: by the beginning of the "
      "data",
      {"auto", "first", "last"});
}

ImportTokensOptions ImportRequest::resolve(int jobs) const {
  if (vocabulary > 0 && !tokenizer.empty())
    core::bad_usage("-t and --vocabulary exclude each other; give one");
  ImportTokensOptions how;
  if (format != "auto") how.format = shard::array_format_of(format);
  how.vocabulary = static_cast<std::uint64_t>(vocabulary);
  if (!tokenizer.empty()) {
    how.tokenizer = load_tokenizer(tokenizer);
    how.mark = end_of_document_id(*how.tokenizer, end_of_document);
  } else if (!end_of_document.empty() && end_of_document != "none") {
    how.mark = static_cast<std::uint64_t>(core::parse_count(end_of_document));
  }
  if (mark != "auto") how.mark_at = mark == "first" ? MarkAt::first : MarkAt::last;
  how.jobs = jobs;
  return how;
}

core::OrderedJson ImportTotals::figures() const {
  return {{"documents", documents}, {"elements", elements}, {"fingerprint", fingerprint.hex()}};
}

std::string ImportTotals::summary() const {
  auto line = fmt::format(
      "{} in {}", core::counted(elements, "element"), core::counted(documents, "document"));
  if (joined > 0)
    line += fmt::format("; {} boundaries between sequences of the same document are lost", joined);
  return line;
}

}  // namespace text
