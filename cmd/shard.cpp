// shard: look at, check, print, join and cut shards (tokens, orders, vectors, pairs); import and
// export token files of other programs.
//
// FILE: shards (man 5 shard), of import llm.c's, nanoGPT's and .npy files; `-` or none is stdin.
// stdout: figures (info, verify), numbers, text or raw elements (cat, head), a shard (merge,
// import), an array (export).

#include <algorithm>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/units.h"
#include "shard/array_file.h"
#include "shard/copy.h"
#include "shard/dataset.h"
#include "shard/describe.h"
#include "shard/verify.h"
#include "text/encode_documents.h"
#include "text/import_tokens.h"
#include "text/print_shard.h"
#include "text/tokenizer.h"

namespace {

using core::OrderedJson;

struct Files {
  std::vector<std::string> files;
  std::vector<std::string> paths() const {
    if (std::count(files.begin(), files.end(), "-") > 1)
      core::fail(core::Code::usage, "two inputs are -; stdin can be read only once");
    return files.empty() ? std::vector<std::string>{"-"} : files;
  }
  void fields(core::FieldList& f) { f.positional("FILE", files, "shards; - or none is stdin"); }
};

struct PrintOptions : Files {
  std::int64_t count = 10;
  bool whole = true;  // cat, or head
  bool documents = false;
  bool text = false;
  bool raw = false;
  void fields(core::FieldList& f) {
    Files::fields(f);
    if (!whole)
      f("count", count, "how many elements or rows; with --documents or --text, documents")
          .short_name = 'n';
    f("documents", documents, "one document a line");
    f("text", text, "the text of each document, by the tokenizer in the shard");
    f("raw", raw, "the elements as they are stored, little-endian");
  }
};

struct SplitOptions : Files {
  std::int64_t parts = 0, documents = 0, bytes = 0;
  void fields(core::FieldList& f) {
    Files::fields(f);
    f("parts", parts, "cut into so many shards of about the same size").short_name = 'n';
    f("documents", documents, "documents a shard");
    f("bytes", bytes, "bytes of elements a shard, unless one document has more");
  }
};

struct ImportOptions : Files {
  std::string format = "auto", tokenizer, end_of_document, mark = "auto";
  std::int64_t vocabulary = 0;
  void fields(core::FieldList& f) {
    Files::fields(f);
    f("format", format, "auto: llm.c or npy, by how a file begins",
      {"auto", "llm.c", "nanogpt", "npy"});
    f("tokenizer", tokenizer, "whose ids they are: tokenizer.json, or `bytes`").short_name = 't';
    f("vocabulary", vocabulary, "without a tokenizer: every id is below it");
    f("end-of-document", end_of_document,
      "token that parts documents, or none; without a tokenizer its id [the tokenizer's]");
    f("mark", mark, "where that token stands in a document (auto: as the data begin)",
      {"auto", "first", "last"});
  }
};

struct ExportOptions : Files {
  std::string format = "npy";
  void fields(core::FieldList& f) {
    Files::fields(f);
    f("format", format, "what to write", {"llm.c", "nanogpt", "npy"});
  }
};

int show_info(const Files& options, const cli::Context& context) {
  core::Output out(context.output);
  for (const auto& path : options.paths()) {
    const shard::Dataset data({path});
    OrderedJson report = shard::describe(path, data);
    if (context.json) {
      report["provenance"] = data.provenance();
      out.write(cli::format_report(context, report));
      continue;
    }
    out.write(cli::format_report(context, report));
    for (const auto& entry : data.provenance()) out.write("made by  " + core::dump(entry) + "\n");
  }
  out.commit();
  return 0;
}

int verify_all(const Files& options, const cli::Context& context) {
  core::Output out(context.output);
  std::vector<std::string> bad;
  for (const auto& path : options.paths()) {
    OrderedJson report = {{"file", path}, {"ok", true}};
    try {
      const auto trailer = shard::verify(path);
      report["elements"] = trailer.elements;
      report["fingerprint"] = trailer.fingerprint.hex();
    } catch (const core::Error& error) {
      if (error.code() != core::Code::bad_data) throw;
      report["ok"] = false;
      report["error"] = error.what();
      bad.push_back(error.what());
    }
    if (context.json) {
      out.write(core::dump(report) + "\n");
    } else if (report["ok"]) {
      out.write(fmt::format("{}: ok, {} elements, fingerprint {}\n", path,
                            report["elements"].get<std::uint64_t>(),
                            report["fingerprint"].get<std::string>()));
    } else if (options.paths().size() > 1) {
      out.write(bad.back() + "\n");
    }
  }
  out.commit();
  if (bad.empty()) return 0;
  core::fail(core::Code::bad_data, "{}",
             bad.size() == 1 ? bad[0] : fmt::format("{} (and {} more)", bad[0], bad.size() - 1));
}

// Cat, and head: the first `count`.
int print(const PrintOptions& options, const cli::Context& context) {
  if (options.raw + options.documents + options.text > 1)
    core::fail(core::Code::usage, "--raw, --documents and --text exclude each other");
  if (options.count < 0) core::fail(core::Code::usage, "--count: takes a positive number");
  if (options.raw) cli::refuse_binary_to_terminal(context);
  const std::uint64_t count =
      options.whole ? UINT64_MAX : static_cast<std::uint64_t>(options.count);
  core::Output out(context.output);
  if (options.text) {
    text::print_text(shard::Dataset(options.paths()), count, out);
  } else if (options.documents) {
    text::print_documents(shard::Dataset(options.paths()), count, out);
  } else {
    text::print_elements(options.paths(), count, options.raw, out);
  }
  out.commit();
  return 0;
}

int merge(const Files& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  const shard::Dataset data(options.paths());
  auto provenance = data.provenance();
  std::vector<core::Digest> inputs;
  for (const auto& file : data.files()) inputs.push_back(file.trailer().fingerprint);
  provenance.push_back(shard::provenance_entry("shard merge", OrderedJson::object(), inputs));
  core::Output out(context.output);
  shard::Writer writer(out, data.header(), provenance, static_cast<int>(context.jobs));
  cli::Progress progress(context, "merge", "elements", data.size());
  shard::copy_documents(data, 0, data.documents().size(), writer,
                        [&](std::uint64_t done) { progress.update(done); });
  writer.finish();
  out.commit();
  return 0;
}

int split(const SplitOptions& options, const cli::Context& context) {
  if (context.output.empty() || context.output == "-")
    core::fail(core::Code::usage, "-o PREFIX is missing: where the parts go");
  for (const auto number : {options.parts, options.documents, options.bytes})
    if (number < 0) core::fail(core::Code::usage, "a part cannot have less than nothing");
  const shard::Dataset data(options.paths());
  const auto ends = shard::part_ends(data.header(), data.documents(),
                                     {.parts = static_cast<std::uint64_t>(options.parts),
                                      .documents = static_cast<std::uint64_t>(options.documents),
                                      .bytes = static_cast<std::uint64_t>(options.bytes)});
  std::size_t first = 0;
  for (std::size_t part = 0; part < ends.size(); ++part) {
    auto provenance = data.provenance();
    provenance.push_back(shard::provenance_entry(
        "shard split", {{"part", part}, {"parts", ends.size()}}, {data.fingerprint()}));
    const std::string path = fmt::format("{}{:05}.shard.zst", context.output, part);
    core::Output out(path);
    shard::Writer writer(out, data.header(), provenance, static_cast<int>(context.jobs));
    shard::copy_documents(data, first, ends[part], writer);
    writer.finish();
    out.commit();
    cli::note(context, fmt::format("{}: {} elements in {} documents", path, writer.elements(),
                                   ends[part] - first));
    first = ends[part];
  }
  return 0;
}

// The id that --end-of-document means.
std::optional<std::uint64_t> mark_of(const ImportOptions& options,
                                     const text::TokenizerPtr& tokenizer) {
  if (tokenizer) return text::end_of_document_id(*tokenizer, options.end_of_document);
  if (options.end_of_document.empty() || options.end_of_document == "none") return std::nullopt;
  return static_cast<std::uint64_t>(core::parse_size(options.end_of_document));
}

int import_arrays(const ImportOptions& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  if (options.vocabulary < 0 || (options.vocabulary > 0 && !options.tokenizer.empty()))
    core::fail(core::Code::usage, "give -t or a positive --vocabulary, not both");
  text::ImportTokensOptions how;
  if (options.format != "auto") how.format = shard::array_format_of(options.format);
  if (!options.tokenizer.empty()) how.tokenizer = text::load_tokenizer(options.tokenizer);
  how.vocabulary = static_cast<std::uint64_t>(options.vocabulary);
  how.mark = mark_of(options, how.tokenizer);
  how.mark_at = options.mark == "first"  ? text::MarkAt::first
                : options.mark == "last" ? text::MarkAt::last
                                         : text::MarkAt::by_data;
  how.jobs = static_cast<int>(context.jobs);
  core::Output out(context.output);
  cli::Progress progress(context, "import", "elements");
  const auto totals = text::import_tokens(options.paths(), how, out,
                                          [&](std::uint64_t done) { progress.update(done); });
  out.commit();
  if (context.json) {
    fmt::print(stderr, "{}",
               cli::format_report(context, {{"documents", totals.documents},
                                            {"elements", totals.elements},
                                            {"fingerprint", totals.fingerprint.hex()}}));
  } else {
    cli::note(context,
              fmt::format("{} elements in {} documents", totals.elements, totals.documents));
  }
  return 0;
}

int export_array(const ExportOptions& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  const shard::Dataset data(options.paths());
  core::Output out(context.output);
  cli::Progress progress(context, "export", "elements", data.size());
  shard::write_array(data, shard::array_format_of(options.format), out,
                     [&](std::uint64_t done) { progress.update(done); });
  out.commit();
  return 0;
}

// A verb of this program.
template <class Options>
cli::Command command(const char* name, const char* summary, const char* example, Options& options,
                     int (*body)(const Options&, const cli::Context&)) {
  return {{name, summary, example},
          core::list_fields(options),
          [&options, body](const cli::Context& context) { return body(options, context); }};
}

}  // namespace

int main(int argc, char** argv) {
  Files info, verify, join;
  PrintOptions cat, head;
  head.whole = false;
  SplitOptions cut;
  ImportOptions bring;
  ExportOptions give;
  return cli::run(
      argc, argv,
      {"shard", "Look at, check, print, join, cut, import and export shards.",
       "  shard info train.shard.zst"},
      {command("info", "Say what shards hold and where they come from.",
               "  shard info --json train.shard.zst | jq .elements", info, show_info),
       command("verify", "Check every byte; exit 65 if one is wrong.", "  shard verify *.shard.zst",
               verify, verify_all),
       command("cat", "Print the elements, one (of vectors: one row) a line.",
               "  shard cat train.shard.zst | sort -n | uniq -c | sort -rn | head", cat, print),
       command("head", "Print the first elements.", "  shard head -n 3 --documents x.shard.zst",
               head, print),
       command("merge", "Join shards of the same kind and tokenizer into one.",
               "  shard merge a.shard.zst b.shard.zst -o all.shard.zst", join, merge),
       command("split", "Cut by documents: PREFIX00000.shard.zst, PREFIX00001.shard.zst, ...",
               "  shard split -n 8 -o part- train.shard.zst", cut, split),
       command("import", "Make a shard of token files of llm.c or nanoGPT, or of .npy arrays.",
               "  shard import -t gpt2.json fineweb_train_*.bin -o train.shard.zst", bring,
               import_arrays),
       command("export", "Write the elements as llm.c, nanoGPT or NumPy read them.",
               "  shard export --format llm.c train.shard.zst -o train.bin", give, export_array)});
}
