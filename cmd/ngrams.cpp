// ngrams: searches and checks indices of n-grams: finds a text, compares a shard with them,
// verifies every byte.
//
// -n: indices (man 5 ngrams). FILE: shards of tokens (man 5 shard); `-` or none is stdin. stdout:
// records, with --json as JSON lines.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "ngrams/ngram_overlap.h"
#include "ngrams/ngrams_builder.h"
#include "shard/dataset.h"

namespace {

int find(const ngrams::FindOptions& options, const cli::Context& context) {
  if (options.texts.empty()) core::bad_usage("give a TEXT");
  const auto index = options.index.open();
  std::string text;
  for (const auto& found : ngrams::find(*index, options))
    text += cli::format_typed_parts(context, found.report, found.places);
  cli::write_output(context, text);
  return 0;
}

int overlap(const ngrams::OverlapOptions& options, const cli::Context& context) {
  const auto index = options.index.open();
  const shard::Dataset data(options.files);
  const auto report = [&] {
    cli::Progress progress(context, "comparing", "tokens", data.size());
    return ngrams::overlap(index, data, options, context.jobs, progress.counter());
  }();
  cli::write_output(context, cli::format_parts(context, report.all, report.rows));
  return 0;
}

struct VerifyOptions {
  std::vector<std::string> folders;
  void fields(core::FieldList& f) { f.positional("FOLDER", folders, "indices of n-grams"); }
};

int verify(const VerifyOptions& options, const cli::Context& context) {
  if (options.folders.empty()) core::bad_usage("give a FOLDER");
  std::string text;
  for (const auto& name : options.folders) {
    const ngrams::Folder folder(name);
    folder.verify();
    auto report = ngrams::describe(name, folder.manifest());
    report["verified"] = true;
    text += cli::format_report(context, report);
  }
  cli::write_output(context, text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ngrams::FindOptions sought;
  ngrams::OverlapOptions compared;
  VerifyOptions checked;
  return cli::run(argc, argv,
      {"ngrams", "Search, compare and check indices of n-grams.",
          "  ngrams find -i ngrams 'Once upon a time'"},
      {cli::command("find", "Count the occurrences of a text, and show some of them.",
           "  ngrams find -i ngrams --json 'Once upon a time' | jq .document", sought, find,
           {"ngrams"}),
          cli::command("overlap",
              "List the spans of a shard that occur in the indices, by document.",
              "  ngrams overlap -i ngrams --at-least 13 test.shard.zst", compared, overlap,
              {"ngrams"}),
          cli::command("verify", "Check every byte; exit with 65 on damage.",
              "  ngrams verify ngrams", checked, verify)});
}
