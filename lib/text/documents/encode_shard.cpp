#include "text/documents/encode_shard.h"

#include "core/units.h"
#include "core/unnamed_file.h"
#include "shard/dataset.h"

namespace text {
namespace {

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

class TextShards {
 public:
  explicit TextShards(ReadTexts how) : how_(std::move(how)) {}

  std::shared_ptr<const core::RandomSource> operator()(
      const std::string& path, const std::string& name) {
    if (!tokenizer_) tokenizer_ = how_.tokenizer();
    TextOptions options;
    options.invalid = "error";
    const auto format = options.follow({path});
    options.by_content = path != name;
    if (path != name) options.name = name;
    core::UnnamedFile out(name);
    const auto made =
        encode_shard({path}, tokenizer_, options, false, how_.jobs, out, [](std::uint64_t) {});
    if (!format.empty()) how_.note(format);
    for (const auto& line : made.notes) how_.note(line);
    how_.note(fmt::format(
        "{}: is a text, encoded with {} tokenizer: {}", name, how_.whose, made.summary()));
    if (made.totals.source_bytes > kWorthAShard)
      how_.note(fmt::format("{}: encode it once with tokenize to save this time", name));
    return out.contents();
  }

 private:
  ReadTexts how_;
  TokenizerPtr tokenizer_;
};

}  // namespace

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
      .between(1 << 20, 0x1p40)
      .bytes();
  f("part", part,
      "I/N: encode the documents that begin in the I-th of N equal parts of the input bytes, "
      "for shard merge; launcher: part of this task of srun or of a job array");
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
  json["lines_skipped"] = totals.flaws.skipped;
  json["lines_mended"] = totals.flaws.mended;
  json["replaced"] = replaced;
  return json;
}

std::string EncodedShard::summary() const {
  std::string line = fmt::format("{}, {}, {}, {}", core::counted(totals.documents, "document"),
      core::counted(totals.tokens, "token"), core::counted(totals.source_bytes, "byte"),
      core::counted(totals.source_words, "word"));
  if (marked) line += fmt::format(", {} of the tokens marked to be learned", totals.marked);
  if (totals.flaws.skipped > 0) line += fmt::format(", {} lines left out", totals.flaws.skipped);
  if (totals.flaws.mended > 0) line += fmt::format(", {} lines repaired", totals.flaws.mended);
  if (replaced > 0) line += fmt::format(", {} times U+FFFD for invalid UTF-8", replaced);
  return line;
}

EncodedShard encode_shard(const std::vector<std::string>& files, const TokenizerPtr& tokenizer,
    const TextOptions& options, bool pairs, int jobs, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress) {
  if (pairs && files.size() != 2) core::bad_usage("--pairs: takes two files, source and target");
  const auto mark = end_of_document_id(*tokenizer, options.end_of_document);
  const TokenizerPtr encoding = options.special ? parsing_special(*tokenizer) : tokenizer;
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
  const auto shards = std::make_shared<TextShards>(std::move(how));
  shard::read_texts_by(
      [shards](const std::string& path, const std::string& name) { return (*shards)(path, name); });
}

}  // namespace text
