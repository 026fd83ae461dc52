// tokenize: text into a shard of token ids, and back; makes and brings in tokenizers.
//
// FILE: UTF-8 text, JSON lines or lines (any bytes are taken); a shard with --decode.
// stdout: a shard of tokens or pairs (man 5 shard); with --learn and --import tokenizer.json; with
// --decode the text. stderr: what was counted.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "text/decode_documents.h"
#include "text/documents.h"
#include "text/encode_documents.h"
#include "text/export.h"
#include "text/import.h"
#include "text/learn.h"
#include "text/tokenizer.h"

namespace {

using core::Code;

struct Options {
  std::vector<std::string> files;
  std::string tokenizer;
  bool decode = false, pairs = false, import = false;
  std::string format = "text", field = "text", document_separator, end_of_document;
  bool count_newlines = false;
  std::string learn, export_as;
  std::int64_t vocab_size = 0, min_count = 0;

  void fields(core::FieldList& f) {
    f.positional("FILE", files, "text; a shard with --decode; - or none is stdin");
    f("tokenizer", tokenizer, "tokenizer.json, or `bytes`").short_name = 't';
    f.group("Documents");
    f("format", format, "text: a file is a document; lines, jsonl: a line is",
      {"text", "jsonl", "lines"});
    f("field", field, "jsonl: the member that is the text");
    f("document-separator", document_separator,
      "text: what stands between documents; it is not encoded");
    f("end-of-document", end_of_document,
      "token after each document, or none [the tokenizer's: <|endoftext|> for GPT-2]");
    f("count-newlines", count_newlines,
      "count each newline as a source word (word tokenizers always do)");
    f.group("Other jobs");
    f("learn", learn, "learn a tokenizer from the texts", {"word", "bpe"});
    f("vocab-size", vocab_size, "learn: tokens in all [bpe: 32768, word: all words]");
    f("min-count", min_count,
      "learn: leave out words (word: 1) or pairs (bpe: 2) seen less often [0: that]");
    f("decode", decode, "print the text of a shard");
    f("pairs", pairs, "two files: line n of the first and line n of the second are a pair");
    f("import", import,
      "make tokenizer.json of encoder.json and vocab.bpe, .tiktoken ranks, fairseq's dict.txt or "
      "subword-nmt's codes");
    f("export", export_as,
      "json: write the tokenizer as tokenizer.json; gpt2: vocab.json and merges.txt into folder -o",
      {"json", "gpt2"});
  }

  text::DocumentOptions documents() const {
    return {text::format_of(format), field, document_separator};
  }
};

int write_tokenizer(const cli::Context& context, const text::Tokenizer& tokenizer) {
  core::Output out(context.output);
  out.write(tokenizer.json());
  out.write("\n");
  out.commit();
  cli::note(context,
            fmt::format("{} tokenizer of {} tokens", name_of(tokenizer.kind()), tokenizer.size()));
  return 0;
}

int learn_tokenizer(const Options& options, const cli::Context& context) {
  if (options.vocab_size < 0 || options.min_count < 0)
    core::fail(Code::usage, "--vocab-size and --min-count take positive numbers");
  const bool bpe = options.learn == "bpe";
  const auto kind = bpe ? text::WordKind::gpt2 : text::WordKind::plain;
  const auto reader = text::read_documents(options.files, options.documents(), text::cut_for(kind));
  cli::Progress reading(context, "count words", "bytes", text::total_bytes(options.files));
  const auto counts =
      text::count_words(*reader, kind, options.field, static_cast<int>(context.jobs),
                        [&](std::uint64_t done) { reading.update(done); });
  text::LearnOptions how;
  how.vocabulary_size = static_cast<std::size_t>(options.vocab_size);
  how.min_count = static_cast<std::uint64_t>(options.min_count);
  if (how.min_count == 0) how.min_count = bpe ? 2 : 1;
  if (!bpe) return write_tokenizer(context, *text::learn_words(counts, how));
  if (how.vocabulary_size == 0) how.vocabulary_size = 32768;
  cli::Progress learning(context, "learn", "tokens", how.vocabulary_size);
  return write_tokenizer(
      context, *text::learn_bpe(counts, how, [&](std::uint64_t done) { learning.update(done); }));
}

int export_tokenizer(const Options& options, const cli::Context& context) {
  if (options.tokenizer.empty()) core::fail(Code::usage, "--export takes -t tokenizer.json");
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  if (options.export_as == "json") return write_tokenizer(context, *tokenizer);
  if (context.output.empty()) core::fail(Code::usage, "--export gpt2 takes -o FOLDER");
  text::export_gpt2(*tokenizer, context.output);
  return 0;
}

int decode_shard(const Options& options, const cli::Context& context) {
  const shard::Dataset data(options.files);
  shard::expect_kind(data.header(), {shard::Kind::tokens, shard::Kind::pairs}, data.name());
  const auto stored = data.header().tokenizer;
  const auto tokenizer = options.tokenizer.empty()
                             ? text::parse_tokenizer(stored, data.name() + ": tokenizer")
                             : text::load_tokenizer(options.tokenizer);
  if (!stored.empty() && tokenizer->json() != stored)
    core::fail(
        Code::bad_data,
        "{}: made by another tokenizer (fingerprint {}) than {} ({}); leave -t out to use its own",
        data.name(), core::hash128(stored).hex(), options.tokenizer,
        tokenizer->fingerprint().hex());
  const auto mark = options.end_of_document.empty()
                        ? text::end_of_document_of(data, *tokenizer)
                        : text::end_of_document_id(*tokenizer, options.end_of_document);
  core::Output out(context.output);
  cli::Progress progress(context, "decode", "tokens", data.size());
  text::decode_documents(data, tokenizer, options.documents(), mark, out,
                         [&](std::uint64_t done) { progress.update(done); });
  out.commit();
  return 0;
}

// The options that change bytes.
core::OrderedJson options_of(const Options& options, const text::Tokenizer& tokenizer,
                             std::optional<std::uint32_t> mark) {
  core::OrderedJson json;
  json["format"] = options.pairs ? "pairs" : options.format;
  if (options.format == "jsonl") json["field"] = options.field;
  if (!options.document_separator.empty()) json["document_separator"] = options.document_separator;
  json["end_of_document"] = nullptr;
  if (mark) json["end_of_document"] = std::string(tokenizer.token(*mark));
  if (options.count_newlines) json["count_newlines"] = true;
  return json;
}

void report(const cli::Context& context, const text::EncodeTotals& totals,
            const text::Tokenizer& tokenizer, const shard::Writer& writer) {
  core::OrderedJson figures;
  figures["documents"] = totals.documents;
  figures["tokens"] = totals.tokens;
  figures["bytes"] = totals.source_bytes;
  figures["words"] = totals.source_words;
  figures["vocabulary"] = tokenizer.size();
  figures["fingerprint"] = writer.fingerprint().hex();
  if (context.json) {
    fmt::print(stderr, "{}", cli::format_report(context, figures));
  } else {
    cli::note(context, fmt::format("{} documents, {} tokens, {} bytes, {} words", totals.documents,
                                   totals.tokens, totals.source_bytes, totals.source_words));
  }
}

int encode_files(const Options& options, const cli::Context& context) {
  if (options.tokenizer.empty())
    core::fail(Code::usage, "give a tokenizer: -t tokenizer.json, or -t bytes; see --help");
  if (options.pairs && options.files.size() != 2)
    core::fail(Code::usage, "--pairs takes two files, source and target");
  cli::refuse_binary_to_terminal(context);
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  const auto mark = text::end_of_document_id(*tokenizer, options.end_of_document);
  const auto cut = [&](const char* begin, const char* end) { return tokenizer->cut(begin, end); };
  const auto reader = options.pairs ? text::read_pairs(options.files[0], options.files[1])
                                    : text::read_documents(options.files, options.documents(), cut);
  shard::Header header;
  header.kind = options.pairs ? shard::Kind::pairs : shard::Kind::tokens;
  header.vocabulary = tokenizer->size();
  header.dtype = shard::dtype_for(header.vocabulary);
  header.tokenizer = tokenizer->json();
  const int jobs = static_cast<int>(context.jobs);
  core::Output out(context.output);
  shard::Writer writer(out, header, {}, jobs);
  cli::Progress progress(context, "tokenize", "bytes", text::total_bytes(options.files));
  const auto totals = text::encode_documents(
      *reader, tokenizer, {options.field, mark, options.count_newlines, jobs}, writer,
      [&](std::uint64_t done) { progress.update(done); });
  writer.add_provenance(shard::provenance_entry("tokenize", options_of(options, *tokenizer, mark),
                                                reader->fingerprints()));
  writer.finish();
  out.commit();
  report(context, totals, *tokenizer, writer);
  return 0;
}

int tokenize(const Options& options, const cli::Context& context) {
  const int jobs = options.import + options.decode + options.pairs + !options.learn.empty() +
                   !options.export_as.empty();
  if (jobs > 1)
    core::fail(Code::usage, "give one of --learn, --import, --export, --decode and --pairs");
  if (!options.learn.empty()) return learn_tokenizer(options, context);
  if (!options.export_as.empty()) return export_tokenizer(options, context);
  if (options.import) return write_tokenizer(context, *text::import_tokenizer(options.files));
  if (options.decode) return decode_shard(options, context);
  return encode_files(options, context);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"tokenize", "Text into a shard of token ids, and back.",
                   "  tokenize --learn bpe --vocab-size 16000 book.txt -o tokenizer.json\n"
                   "  tokenize --import encoder.json vocab.bpe -o gpt2.json\n"
                   "  tokenize -t gpt2.json --format jsonl news.jsonl -o news.shard.zst\n"
                   "  tokenize --decode news.shard.zst | less"},
                  options, tokenize);
}
