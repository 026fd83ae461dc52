// shard: inspects, checks, prints, merges and splits shards (tokens, orders, vectors, pairs), and
// imports and exports token files of other programs.
//
// FILE: shards (man 5 shard); for import files of llm.c, nanoGPT or Megatron, or .npy files; `-` or
// none is stdin. stdout: figures (info, verify), numbers, text or raw elements (cat, head), a shard
// (merge, import), an array (export).

#include "cli/progress.h"
#include "cli/summary.h"
#include "shard/copy.h"
#include "shard/megatron_file.h"
#include "text/documents/decode_documents.h"
#include "text/documents/import_tokens.h"

namespace {

// FILEs and the options of a verb.
template <class... More> struct Options : More... {
  std::vector<std::string> files;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards; stdin if - or not given");
    (More::fields(f), ...);
  }
};

int info(const Options<>& options, const cli::Context& context) {
  core::Output out(context.output);
  for (const auto& path : core::input_paths(options.files)) {
    const shard::Dataset data({path});
    core::OrderedJson report = shard::describe(path, data);
    if (context.json) report["provenance"] = data.provenance();
    out.write(cli::format_report(context, report));
    if (!context.json) out.write(shard::made_by(data));
  }
  out.commit();
  return 0;
}

int verify(const Options<>& options, const cli::Context& context) {
  core::Output out(context.output);
  const auto paths = core::input_paths(options.files);
  const auto wrong = shard::judge(paths, [&](const shard::Verdict& found) {
    if (context.json || found.ok() || paths.size() > 1)
      out.write((context.json ? core::dump(found.json()) : found.line()) + "\n");
  });
  out.commit();
  if (!wrong.empty()) core::bad_data("{}", wrong);
  return 0;
}

int print(const Options<text::PrintOptions>& options, const cli::Context& context) {
  if (options.raw) cli::refuse_binary_to_terminal(context);
  core::Output out(context.output);
  text::print(core::input_paths(options.files), options, out);
  out.commit();
  return 0;
}

int merge(const Options<>& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  const shard::Dataset data(options.files);
  core::Output out(context.output);
  cli::Progress progress(context, "merge", "elements", data.size());
  shard::merge(data, out, static_cast<int>(context.jobs), progress.counter());
  out.commit();
  return 0;
}

int split(const Options<shard::CutOptions>& options, const cli::Context& context) {
  if (context.output.empty() || context.output == "-")
    core::bad_usage("-o PREFIX is missing; give the prefix of the parts' names");
  shard::split(shard::Dataset(options.files), options.cut(), context.output,
      static_cast<int>(context.jobs),
      [&](const shard::Part& part) { cli::note(context, part.summary()); });
  return 0;
}

using Import = Options<text::ImportRequest, cli::SummaryOptions>;

int import_arrays(const Import& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  const auto how = options.resolve(static_cast<int>(context.jobs));
  for (const auto& path : options.files)
    if (const auto pair = shard::megatron_input(path, how.format))
      for (const auto& file : {pair->numbers, pair->index}) core::protect_input(file);
  cli::Summary summary(context, options);
  core::Output out(context.output);
  cli::Progress progress(context, "import", "elements");
  const auto totals = text::import_tokens(options.files, how, out, progress.counter());
  out.commit();
  summary.commit(totals.figures(), {totals.summary()});
  return 0;
}

int export_pair(const shard::Dataset& data, const cli::Context& context) {
  if (context.output.empty() || context.output == "-")
    core::bad_usage("-o NAME is missing; give the name of NAME.bin and NAME.idx");
  cli::Progress progress(context, "export", "elements", data.size());
  shard::write_megatron(data, shard::megatron_files(context.output), progress.counter());
  return 0;
}

int export_array(const Options<shard::ArrayOptions>& options, const cli::Context& context) {
  const auto format = shard::array_format_of(options.format);
  const bool is_pair = format == shard::ArrayFormat::megatron;
  if (!is_pair) cli::refuse_binary_to_terminal(context);
  const shard::Dataset data(options.files);
  if (data.header().marked)
    cli::note(
        context, fmt::format("{}: the marks are left out; these formats have none", data.name()));
  if (is_pair) return export_pair(data, context);
  core::Output out(context.output);
  cli::Progress progress(context, "export", "elements", data.size());
  shard::write_array(data, format, out, progress.counter());
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options<> looked_at, checked, joined;
  Options<text::PrintOptions> cat, head;
  head.whole = false;
  Options<shard::CutOptions> cut;
  Import brought;
  Options<shard::ArrayOptions> given;
  return cli::run(argc, argv,
      {"shard", "Describe, check, print, merge, split, import and export shards.",
          "  shard info train.shard.zst"},
      {cli::command("info", "Describe shards: elements, tokenizer and origin.",
           "  shard info --json train.shard.zst | jq .elements", looked_at, info),
          cli::command("verify", "Check every byte; exit with 65 on damage.",
              "  shard verify *.shard.zst", checked, verify),
          cli::command("cat", "Print the elements, one per line (vectors: one row per line).",
              "  shard cat train.shard.zst | sort -n | uniq -c | sort -rn | head", cat, print),
          cli::command("head", "Print the first elements.",
              "  shard head -n 3 --by-document x.shard.zst", head, print),
          cli::command("merge", "Merge shards of the same kind and tokenizer.",
              "  shard merge a.shard.zst b.shard.zst -o all.shard.zst", joined, merge),
          cli::command("split",
              "Split by documents into PREFIX00000.shard.zst, PREFIX00001.shard.zst, ...",
              "  shard split -n 8 -o part- train.shard.zst", cut, split),
          cli::command("import",
              "Convert token files of llm.c, nanoGPT or Megatron, or .npy, to a shard.",
              "  shard import -t gpt2.json fineweb_train_*.bin -o train.shard.zst", brought,
              import_arrays, {"tokenizer"}),
          cli::command("export",
              "Write the elements in the format of llm.c, nanoGPT, Megatron or NumPy.",
              "  shard export --output-format llm.c train.shard.zst -o train.bin", given,
              export_array)});
}
