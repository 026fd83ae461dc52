// build-ngrams: builds an index of a text's n-grams of every length: its sorted suffixes.
//
// FILE: texts, or shards of tokens (man 5 shard), several as one; `-` or none is stdin. -t:
// tokenizer of texts. -o: the index (man 5 ngrams). stdout: a record of its contents.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "ngrams/ngrams_builder.h"
#include "shard/dataset.h"
#include "text/documents/encode_shard.h"
#include "text/formats/tokenizer_json.h"

namespace {

struct Options {
  std::vector<std::string> files;
  std::string tokenizer;
  ngrams::BuildOptions build;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "texts, or shards of tokens; stdin if - or not given");
    f("tokenizer", tokenizer, "texts: tokenizer.json, a model's folder, or `bytes`").short_name =
        't';
    build.fields(f);
  }
};

int build(const Options& options, const cli::Context& context) {
  if (context.output.empty()) core::bad_usage("-o FOLDER is missing; see --help");
  text::read_texts({[&] { return text::load_tokenizer(options.tokenizer); }, "the given",
      static_cast<int>(context.jobs), cli::noter(context)});
  const shard::Dataset data(options.files);
  const auto cut = options.build.cut(data.header().vocabulary, context.jobs);
  cli::catch_stop_signals();
  cli::Progress progress(context, "sorting", "tokens", data.size());
  const auto built =
      ngrams::build(data, context.output, cut, context.jobs, [&](std::uint64_t tokens) {
        if (cli::stop_requested())
          core::fail(core::Code::stopped, "stopped; the sorted parts are kept; rerun to resume");
        progress.update(tokens);
      });
  if (built.was_complete)
    cli::note(context, context.output + " already holds this text; nothing to do");
  cli::write_receipt(context, ngrams::describe(context.output, built.manifest));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      cli::without_seed({"build-ngrams", "Build an index of a text's n-grams of all lengths.",
          "  build-ngrams train.shard.zst -o ngrams\n"
          "  eval-ppl -m model --ngrams ngrams --tune valid.shard.zst test.shard.zst",
          {"tokenizer"}, {}, "folder of the index [required]"}),
      options, build);
}
