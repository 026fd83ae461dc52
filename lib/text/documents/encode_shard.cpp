#include "text/documents/encode_shard.h"

#include "core/parallel.h"
#include "core/units.h"
#include "core/unnamed_file.h"
#include "shard/dataset.h"
#include "text/tokenizer/utf8.h"

namespace text {
namespace {

const core::OrderedJson& member(
    const core::OrderedJson& of, const char* name, const std::string& origin) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  if (!of.is_object() || found == of.end()) core::bad_data("{}: has no \"{}\"", origin, name);
  return *found;
}

std::string text_member(const core::OrderedJson& of, const char* name, const std::string& origin) {
  const auto& value = member(of, name, origin);
  if (!value.is_string()) core::bad_data("{}: \"{}\" is not a string", origin, name);
  return value.get<std::string>();
}

constexpr int kDeepest = 64;  // nesting limit of lists and objects in a line

// Holds the ids of one batch and the ends of its documents.
struct Encoded {
  struct Part {
    std::size_t end;  // index in ids
    std::uint64_t bytes, words;
    bool closes;
    std::vector<shard::Span> marks = {};  // relative to the document's first token
  };
  std::vector<std::uint32_t> ids;
  std::vector<Part> parts;
  std::string name;  // name of the documents
  std::uint64_t source_bytes = 0;
  LineFlaws flaws;
  std::string special;  // the first text of a special token found
};

// Each thread needs its own.
class BatchEncoder {
 public:
  BatchEncoder(const TokenizerPtr& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer), options_(options), encoder_(tokenizer->encoder()),
        texts_(options.field, options.bad_lines) {}

  void operator()(Batch& batch, Encoded& out) {
    out.ids.clear();
    out.parts.clear();
    out.source_bytes = batch.source_bytes;
    out.special.clear();
    out.name = batch.name;
    if (options_.pieces) {
      out.flaws = {};
      for (const auto& part : batch.parts) encode_pieces(batch, part, out);
      return;
    }
    out.flaws = texts_.each(batch, [&](const Batch::Part& part, std::string_view text) {
      const std::size_t start = out.ids.size();
      look_for_special(text, out);
      encoder_->encode(text, out.ids, part.continues);
      const bool page = batch.format == Format::wikitext;
      const std::string_view source = page ? batch.piece(part) : text;
      const std::uint64_t words =
          page ? wikitext_words(source) : count(text, part.in_word, out.ids.size() - start);
      if (part.closes && options_.end_of_document) out.ids.push_back(*options_.end_of_document);
      out.parts.push_back({out.ids.size(), source.size(), words, part.closes});
    });
  }

 private:
  void look_for_special(std::string_view text, Encoded& out) {
    if (options_.special == nullptr || found_) return;
    out.special = options_.special->find(text);
    found_ = !out.special.empty();
  }

  // Encodes a line, which is a document.
  void encode_pieces(const Batch& batch, const Batch::Part& part, Encoded& out) {
    const std::string origin = fmt::format("{}:{}", batch.source, part.line);
    const std::string_view line = batch.piece(part);
    const auto pieces = options_.pieces(core::parse_ordered_json(line, origin, kDeepest), origin);
    const std::size_t start = out.ids.size();
    Encoded::Part made{0, 0, 0, true};
    std::string whole;
    const auto mark = [&](std::size_t from) {
      if (from == out.ids.size()) return;
      if (!made.marks.empty() && made.marks.back().end == from - start)
        made.marks.back().end = out.ids.size() - start;
      else made.marks.push_back({from - start, out.ids.size() - start});
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t from = out.ids.size();
      encoder_->encode(pieces[i].text, out.ids, i > 0);
      if (pieces[i].learned) mark(from);
      whole += pieces[i].text;
    }
    look_for_special(whole, out);
    made.bytes = whole.size();
    made.words = count(whole, false, out.ids.size() - start);
    if (options_.end_of_document) {
      out.ids.push_back(*options_.end_of_document);
      if (!pieces.empty() && pieces.back().learned) mark(out.ids.size() - 1);
    }
    made.end = out.ids.size();
    out.parts.push_back(std::move(made));
  }

  std::uint64_t count(std::string_view text, bool in_word, std::size_t n_ids) const {
    if (tokenizer_->counts_newlines()) return n_ids;
    std::uint64_t words = count_words(text, in_word);
    if (options_.count_newlines)
      words += static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
    return words;
  }

  TokenizerPtr tokenizer_;
  const EncodeOptions& options_;
  std::unique_ptr<Encoder> encoder_;
  PartTexts texts_;
  bool found_ = false;  // stop looking after the first
};

// Returns the options that affect the output's bytes.
core::OrderedJson changes_of(const TextOptions& options, Format format, bool pairs,
    const Tokenizer& tokenizer, std::optional<std::uint32_t> mark) {
  core::OrderedJson json;
  const bool jsonl = format == Format::jsonl;
  json["format"] = pairs                      ? "pairs"
                   : jsonl                    ? "jsonl"
                   : options.format == "auto" ? "text"
                                              : options.format;
  if (options.pieces) json["loss_on"] = options.loss_on;
  else if (jsonl) json["field"] = options.field;
  if (format == Format::parquet) json["column"] = options.column;
  if (!options.document_separator.empty()) json["document_separator"] = options.document_separator;
  json["end_of_document"] = nullptr;
  if (mark) json["end_of_document"] = std::string(tokenizer.token(*mark));
  if (options.count_newlines) json["count_newlines"] = true;
  if (options.detokenise) json["detokenise"] = true;
  if (options.bad_lines != "error") json["bad_lines"] = options.bad_lines;
  if (options.invalid != "auto") json["invalid"] = options.invalid;
  if (options.newlines != "keep") json["newlines"] = options.newlines;
  if (options.special) json["special"] = true;
  if (!options.names.empty()) json["recursive"] = true;
  if (core::is_part(options.part)) shard::put_part(json, core::part(options.part));
  return json;
}

constexpr std::uint64_t kWorthAShard = 100'000'000;  // bytes of text

}  // namespace

LinePieces completion_pieces() {
  return [](const core::OrderedJson& line, const std::string& origin) {
    return std::vector<Piece>{{text_member(line, "prompt", origin), false},
        {text_member(line, "completion", origin), true}};
  };
}

LinePieces segment_pieces() {
  return [](const core::OrderedJson& line, const std::string& origin) {
    const auto& segments = member(line, "segments", origin);
    if (!segments.is_array()) core::bad_data("{}: \"segments\" is not a list", origin);
    std::vector<Piece> pieces;
    for (const auto& segment : segments) {
      const auto& label = member(segment, "label", origin + ": segments");
      if (!label.is_boolean())
        core::bad_data("{}: segments: \"label\" is neither true nor false", origin);
      pieces.push_back({text_member(segment, "text", origin + ": segments"), label.get<bool>()});
    }
    return pieces;
  };
}

EncodeTotals encode_documents(DocumentReader& reader, const TokenizerPtr& tokenizer,
    const EncodeOptions& options, shard::Writer& writer,
    const std::function<void(std::uint64_t)>& progress) {
  EncodeTotals totals;
  std::uint64_t bytes = 0, words = 0;  // of the unfinished document
  core::work_in_order<Batch, Encoded>(
      options.jobs, [&](Batch& batch) { return reader.next(batch); },
      [&]() -> std::function<void(Batch&, Encoded&)> {
        auto encoder = std::make_shared<BatchEncoder>(tokenizer, options);
        return [encoder](Batch& batch, Encoded& out) { (*encoder)(batch, out); };
      },
      [&](Encoded& encoded) {
        std::size_t begin = 0;
        for (const auto& part : encoded.parts) {
          writer.write(std::span(encoded.ids).subspan(begin, part.end - begin));
          begin = part.end;
          bytes += part.bytes;
          words += part.words;
          if (!part.closes) continue;
          writer.end_document(bytes, words, encoded.name, part.marks);
          for (const auto& mark : part.marks) totals.marked += mark.end - mark.begin;
          ++totals.documents;
          totals.source_bytes += bytes;
          totals.source_words += words;
          bytes = words = 0;
        }
        totals.tokens += encoded.ids.size();
        totals.flaws.add(encoded.flaws);
        if (totals.special.empty()) totals.special = encoded.special;
        progress(encoded.source_bytes);
      });
  return totals;
}

std::optional<std::uint32_t> end_of_document_id(
    const Tokenizer& tokenizer, const std::string& name) {
  if (name.empty()) return tokenizer.end_of_document();
  if (name == "none") return std::nullopt;
  const auto id = tokenizer.id_of(name);
  if (!id)
    core::bad_usage(
        "--end-of-document: the tokenizer has no token {}; give another, or none", name);
  return id;
}

shard::Header header_of(const Tokenizer& tokenizer, bool pairs, bool marked) {
  shard::Header header;
  header.kind = pairs ? shard::Kind::pairs : shard::Kind::tokens;
  header.vocabulary = tokenizer.size();
  header.dtype = shard::dtype_for(header.vocabulary);
  header.tokenizer = tokenizer.json();
  header.marked = marked;
  return header;
}

void TextOptions::fields(core::FieldList& f) {
  const auto in_documents = f.group("Documents");
  f("format", format,
      "document boundaries: text: one document per file; lines, jsonl: per line; wikitext: per "
      "page, which begins with = Title =; parquet: per row; auto: by the file's name and first "
      "bytes",
      {"auto", "text", "jsonl", "lines", "wikitext", "parquet"});
  f("detokenise", detokenise,
      "wikitext: undo its tokenization ( @-@ , spaces before commas); counts of bytes and words "
      "remain those of the file");
  f("field", field, "jsonl: field of the text");
  f("column", column, "parquet: column of the text");
  f("document-separator", document_separator,
      "text: separator between documents, which is not encoded");
  f("end-of-document", end_of_document,
      "token after each document, or none [the tokenizer's: <|endoftext|> for GPT-2]");
  f("count-newlines", count_newlines,
      "count each newline as a word for perplexity per word (word tokenizers always do)");
  f("bad-lines", bad_lines,
      "jsonl: lines without a valid text: error: stop; skip: leave the line out; replace: write "
      "U+FFFD for unpaired surrogates and invalid UTF-8 and null for NaN, and leave out other "
      "lines",
      {"error", "skip", "replace"});
  f("invalid", invalid,
      "invalid UTF-8: error: stop; replace: write U+FFFD; keep: encode it unchanged; auto: keep "
      "with -t bytes, else error",
      {"auto", "error", "replace", "keep"});
  f("newlines", newlines, "lf: convert CRLF to LF; keep: change nothing", {"keep", "lf"});
  f("special", special, "parse the text of special tokens, such as <|endoftext|>, as these tokens");
  f("decode-memory", decode_memory, "memory limit in bytes for decompressing a FILE")
      .bytes(1 << 20, 0x1p40);
  f("part", part,
      "I/N: encode the documents that begin in the I-th of N equal parts of the input bytes, "
      "for shard merge; launcher: I/N of this task of srun or a job array");
}

void TextOptions::check(bool encodes) const {
  core::part(part);  // throws for an invalid part
  if (core::is_part(part) && !encodes) core::bad_usage("--part: requires encoding; leave it out");
  if (special && !encodes) core::bad_usage("--special: requires encoding; leave it out");
  if (detokenise && format != "wikitext")
    core::bad_usage("--detokenise: requires --format wikitext");
  if (count_newlines && format == "wikitext")
    core::bad_usage(
        "--count-newlines: cannot be combined with --format wikitext, whose words are separated "
        "by white space");
}

DocumentOptions TextOptions::documents(bool of_bytes, int jobs) const {
  if (!document_separator.empty() && format_of(format) != Format::text)
    core::bad_usage("--document-separator: requires --format text; leave it out with {}", format);
  if (newlines == "lf" && format == "jsonl")
    core::bad_usage(
        "--newlines lf: cannot be combined with JSON lines, whose texts are kept as they "
        "are");
  DocumentOptions made{format_of(format), field, document_separator, {}, detokenise};
  made.rules.invalid = invalid == "replace"            ? Invalid::replace
                       : invalid == "keep"             ? Invalid::keep
                       : invalid == "auto" && of_bytes ? Invalid::pass
                                                       : Invalid::error;
  made.rules.drop_cr = newlines == "lf";
  made.rules.unpack_memory = static_cast<std::uint64_t>(decode_memory);
  made.bad_lines = bad_lines == "skip"      ? BadLines::skip
                   : bad_lines == "replace" ? BadLines::replace
                                            : BadLines::error;
  made.by_content = by_content;
  made.name = name;
  made.names = names;
  made.column = column;
  made.threads = jobs;
  return made;
}

std::string TextOptions::follow(const std::vector<std::string>& files) {
  if (format != "auto" || !document_separator.empty()) return {};
  if (are_parquet(files)) {
    format = "parquet";
    return fmt::format(
        "{}: read as Parquet; the \"{}\" of each row is a document", files[0], column);
  }
  if (!are_json_lines(files)) {
    by_content = true;
    return {};
  }
  format = "jsonl";
  return fmt::format(
      "{}: read as JSON lines, because of its name; the \"{}\" of each line is a document; "
      "--format text encodes the file unchanged",
      files[0], field);
}

core::OrderedJson EncodedShard::figures() const {
  core::OrderedJson json{{"documents", totals.documents}, {"tokens", totals.tokens},
      {"bytes", totals.source_bytes}, {"words", totals.source_words}, {"vocabulary", vocabulary},
      {"fingerprint", fingerprint.hex()}};
  if (marked) json["marked"] = totals.marked;
  if (!tells_flaws) return json;
  json.update({{"lines_skipped", totals.flaws.skipped}, {"lines_mended", totals.flaws.mended},
      {"replaced", replaced}});
  return json;
}

std::string EncodedShard::summary() const {
  std::string line = fmt::format("{}, {}, {}, {}", core::counted(totals.documents, "document"),
      core::counted(totals.tokens, "token"), core::counted(totals.source_bytes, "byte"),
      core::counted(totals.source_words, "word"));
  if (marked) line += fmt::format(", {} of the tokens marked to be learned", totals.marked);
  if (totals.flaws.skipped > 0)
    line += ", " + core::counted(totals.flaws.skipped, "line") + " left out";
  if (totals.flaws.mended > 0)
    line += ", " + core::counted(totals.flaws.mended, "line") + " repaired";
  if (replaced > 0) line += fmt::format(", {} times U+FFFD for invalid UTF-8", replaced);
  return line;
}

EncodedShard encode_shard(const std::vector<std::string>& files, const TokenizerPtr& tokenizer,
    const TextOptions& options, bool pairs, int jobs, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress) {
  if (pairs && files.size() != 2) core::bad_usage("--pairs: takes two files, source and target");
  const auto mark = end_of_document_id(*tokenizer, options.end_of_document);
  const TokenizerPtr encoding = options.special ? tokenizer->parsing_special() : tokenizer;
  ByteRange range;
  if (core::is_part(options.part))
    range = range_of(core::part(options.part), pairs ? std::vector{files[0]} : files);
  DocumentOptions documents = options.documents(tokenizer->kind() == TokenizerKind::bytes, jobs);
  documents.range = range;
  const auto reader =
      pairs ? read_pairs(files[0], files[1], range, documents.rules)
            : read_documents(files, documents,
                  [&](const char* begin, const char* end) { return encoding->cut(begin, end); });
  shard::Writer writer(out, header_of(*tokenizer, pairs, bool(options.pieces)), {}, jobs);
  EncodedShard made;
  made.marked = bool(options.pieces);
  const SpecialText special(*tokenizer);
  made.totals = encode_documents(*reader, encoding,
      {options.field, mark, options.count_newlines, jobs, documents.bad_lines,
          options.special ? nullptr : &special, options.pieces},
      writer, progress);
  writer.add_provenance(shard::provenance_entry("tokenize",
      changes_of(options, reader->format(), pairs, *tokenizer, mark), reader->fingerprints()));
  writer.finish();
  made.vocabulary = tokenizer->size();
  made.fingerprint = writer.fingerprint();
  made.tells_flaws = options.bad_lines != "error" || options.invalid != "auto";
  made.replaced = reader->findings().replaced.count;
  made.notes = notes_of(*reader, documents, made.totals.flaws);
  if (const auto& found = made.totals.special; !found.empty())
    made.notes.push_back(SpecialText::note("the text", found));
  return made;
}

void read_texts(ReadTexts how) {
  shard::read_texts_by([how = std::move(how), tokenizer = TokenizerPtr()](
                           const std::string& path, const std::string& name) mutable {
    if (!tokenizer) tokenizer = how.tokenizer();
    TextOptions options;
    options.invalid = "error";
    const auto format = options.follow({path});
    options.by_content = path != name;
    if (path != name) options.name = name;
    core::UnnamedFile out(name);
    const auto made =
        encode_shard({path}, tokenizer, options, false, how.jobs, out, [](std::uint64_t) {});
    if (!format.empty()) how.note(format);
    for (const auto& line : made.notes) how.note(line);
    how.note(fmt::format(
        "{}: is a text, encoded with {} tokenizer: {}", name, how.whose, made.summary()));
    if (made.totals.source_bytes > kWorthAShard)
      how.note(fmt::format("{}: encode it once with tokenize to save this time", name));
    return out.contents();
  });
}

}  // namespace text
