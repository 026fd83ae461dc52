// tokenize: converts text to a shard of token ids and back, and learns and imports tokenizers.
//
// FILE: text, JSON lines or lines, optionally compressed by zstd, gzip, xz or bzip2; with --decode
// a shard. stdout: a shard (man 5 shard); with --learn and --import tokenizer.json; with --decode
// the text.

#include "cli/progress.h"
#include "cli/summary.h"
#include "text/chat/chat_template.h"
#include "text/documents/decode_documents.h"
#include "text/formats/import.h"
#include "text/formats/tokenizer_json.h"
#include "text/learn/learn.h"

namespace {

struct Options {
  std::vector<std::string> files;
  std::string tokenizer, export_as, loss_on;
  text::TextOptions text;
  text::LearnRequest learn;
  cli::SummaryOptions summary;
  bool decode = false, pairs = false, import = false, recursive = false;
  void fields(core::FieldList& f) {
    f.positional(
        "FILE", files, "texts, also compressed; shards with --decode; stdin if - or not given");
    f("tokenizer", tokenizer, "tokenizer.json, or `bytes`").short_name = 't';
    f("recursive", recursive,
        "read folders: each file below them is a document with the file's name");
    text.fields(f);
    f("loss-on", loss_on,
        "JSON lines: mark the part of each document that is learned: the \"completion\" after a "
        "\"prompt\"; the assistant's turns of \"messages\", written by the chat template of -t "
        "FOLDER; \"segments\" whose \"label\" is true",
        {"completion", "assistant", "segments"});
    summary.fields(f);
    const auto in_other_jobs = f.group("Other jobs");
    learn.fields(f);
    f("decode", decode, "print the text of a shard");
    f("pairs", pairs,
        "two parallel files: line n of the first and line n of the second are a pair");
    f("import", import,
        "convert encoder.json and vocab.bpe, .tiktoken ranks, fairseq's dict.txt, subword-nmt's "
        "codes or RWKV's vocabulary to tokenizer.json");
    f("export", export_as,
        "json: write the tokenizer as tokenizer.json; gpt2: write vocab.json and merges.txt into "
        "the folder of -o",
        {"json", "gpt2"});
  }
};

int write_tokenizer(const cli::Context& context, const text::Tokenizer& tokenizer) {
  cli::write_output(context, tokenizer.json() + "\n");
  cli::note(context, tokenizer.summary());
  return 0;
}

// `format` says which format was chosen; it may be empty. It follows the work, so that bad input
// gets one line.
int learn_tokenizer(
    const Options& options, const std::string& format, const cli::Context& context) {
  cli::Progress reading(context, "count words", "bytes", text::total_bytes(options.files));
  cli::Progress learning(context, "learn", "tokens", options.learn.options().vocabulary_size);
  const auto tokenizer = text::learn_tokenizer(options.files,
      options.text.documents(false, static_cast<int>(context.jobs)), options.learn,
      static_cast<int>(context.jobs), {reading.counter(), learning.counter(), cli::noter(context)});
  write_tokenizer(context, *tokenizer);
  cli::note(context, format);
  cli::note(context, text::shortfall(*tokenizer, options.learn));
  return 0;
}

int export_tokenizer(const Options& options, const cli::Context& context) {
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  if (options.export_as == "json") return write_tokenizer(context, *tokenizer);
  if (context.output.empty()) core::bad_usage("--export gpt2: -o FOLDER is missing");
  text::export_gpt2(*tokenizer, context.output);
  return 0;
}

int decode(const Options& options, const cli::Context& context) {
  const text::ShardText shard(options.files, options.tokenizer, options.text);
  core::Output out(context.output);
  cli::Progress progress(context, "decode", "tokens", shard.tokens());
  shard.write(out, progress.counter());
  out.commit();
  return 0;
}

int encode(const Options& options, const std::string& format, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  cli::Summary summary(context, options.summary);
  core::Output out(context.output);
  cli::Progress progress(context, "tokenize", "bytes", text::total_bytes(options.files));
  const auto made = text::encode_shard(options.files, tokenizer, options.text, options.pairs,
      static_cast<int>(context.jobs), out, progress.counter());
  out.commit();
  cli::note(context, tokenizer->remark());
  cli::note(context, format);
  for (const auto& note : made.notes) cli::note(context, note);
  summary.commit(made.figures(), {made.summary()});
  return 0;
}

// Replaces folders by the texts in them.
void find_texts(Options& options, const cli::Context& context) {
  if (text::format_of(options.text.format) != text::Format::text ||
      !options.text.document_separator.empty())
    core::bad_usage(
        "--recursive: each file is a document; use --format text and no --document-separator");
  if (options.import || options.decode || options.pairs || !options.export_as.empty())
    core::bad_usage("--recursive: requires encoding or --learn");
  if (options.files.empty()) core::bad_usage("--recursive: give a folder");
  auto found = text::texts_below(options.files);
  for (const auto& note : found.notes) cli::note(context, note);
  options.files = std::move(found.paths);
  options.text.names = std::move(found.names);
}

// Returns which parts of a JSON line are learned.
text::LinePieces pieces_of(const Options& options) {
  if (options.loss_on == "completion") return text::completion_pieces();
  if (options.loss_on == "segments") return text::segment_pieces();
  const auto chat = std::make_shared<const text::Chat>(text::Chat::in_folder(options.tokenizer));
  return [chat](const core::OrderedJson& line, const std::string& origin) {
    if (!line.is_object() || !line.contains("messages"))
      core::bad_data("{}: has no \"messages\"", origin);
    std::vector<text::Piece> pieces;
    for (auto& part : chat->parts(line.at("messages"), origin))
      pieces.push_back({std::move(part.text), part.answer});
    return pieces;
  };
}

void learn_in_part(Options& options) {
  auto& text = options.text;
  if (text.format != "auto" && text.format != "jsonl")
    core::bad_usage("--loss-on: requires JSON lines; give --format jsonl");
  for (const auto& option : core::changed(options.text))
    if (option == "field" || option == "column")
      core::bad_usage(
          "--{}: cannot be combined with --loss-on, which names its own members", option);
  if (text.bad_lines != "error")
    core::bad_usage("--loss-on: cannot be combined with --bad-lines; every line must be valid");
  text.format = "jsonl";
  text.loss_on = options.loss_on;
  text.pieces = pieces_of(options);
  // A chat template writes turns with special tokens.
  if (options.loss_on == "assistant") text.special = true;
}

int tokenize(Options options, const cli::Context& context) {
  if (options.recursive) find_texts(options, context);
  const bool learns = !options.learn.kind.empty(), exports = !options.export_as.empty();
  if (options.import + options.decode + options.pairs + learns + exports > 1)
    core::bad_usage(
        "--learn, --import, --export, --decode and --pairs exclude each other; give one");
  const bool encodes = options.import + options.decode + learns + exports == 0;
  if (!options.loss_on.empty() && (!encodes || options.pairs || options.recursive))
    core::bad_usage("--loss-on: requires encoding JSON lines; leave it out");
  options.text.check(encodes);
  options.summary.check(encodes);
  if (exports) return export_tokenizer(options, context);
  if (options.import) return write_tokenizer(context, *text::import_tokenizer(options.files));
  if (options.decode) return decode(options, context);
  std::string format;
  if (!options.loss_on.empty()) learn_in_part(options);
  else if (!options.pairs && !options.recursive) format = options.text.follow(options.files);
  return learns ? learn_tokenizer(options, format, context) : encode(options, format, context);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      cli::without_seed({"tokenize",
          "Encode text as a shard of token ids, decode shards, and learn or convert tokenizers.",
          "  tokenize --learn bpe --vocab-size 16000 book.txt -o tokenizer.json\n"
          "  tokenize --import encoder.json vocab.bpe -o gpt2.json\n"
          "  tokenize -t gpt2.json --format jsonl news.jsonl -o news.shard.zst\n"
          "  tokenize -t gpt2.json --recursive notes -o notes.shard.zst\n"
          "  tokenize --decode news.shard.zst | less",
          {"tokenizer"}}),
      options, tokenize);
}
