// annotate: writes a text as a page that shows each token's loss and the sources of its
// probability.
//
// FILE: shards of tokens (man 5 shard) or texts, which a model scores. Without a model: the output
// of `sample --cite --json`. `-` or none is stdin. stdout: an HTML page that needs no network; with
// --json a line for each token.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/answers/annotate.h"
#include "nn/base/runtime.h"
#include "page/page_writer.h"

namespace {

struct AnnotateOptions {
  std::vector<std::string> files;
  infer::AnnotateOptions annotate;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards, texts or samples; stdin if - or not given");
    annotate.fields(f);
    annotate.evaluation.compute.fields(f);
  }
};

int annotate(AnnotateOptions options, const cli::Context& context) {
  options.annotate.evaluation.memory.choose(context.flags);
  const auto& how = options.annotate;
  const auto files = core::input_paths(options.files);
  const bool samples = how.from == "sample" || (how.from == "auto" && how.evaluation.model.empty());
  if (samples && !how.evaluation.model.empty())
    core::bad_usage("--format sample: samples have scores already; leave --model out");
  if (!samples && how.evaluation.model.empty())
    core::bad_usage("--format {}: --model is missing; see --help", how.from);
  if (samples && !how.beside.empty())
    core::bad_usage("--beside: samples cannot be compared; leave it out");
  core::Output out(context.output);
  if (!samples)
    nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  const auto text = samples ? infer::annotate_samples(how, files)
                            : infer::annotate(how, files, cli::noter(context));
  (context.json ? page::write_lines : page::write_page)(out, text);
  out.commit();
  return 0;
}

}  // namespace

int annotate_main(int argc, char** argv) {
  AnnotateOptions options;
  return cli::run(argc, argv,
      cli::without_seed({"annotate",
          "Write a text as an HTML page that shows each token's loss and the memories that "
          "predicted it.",
          "  annotate -m model --cache 2000 chapter.txt -o chapter.html\n"
          "  eval-ppl -m other --per-token other.tsv test.shard.zst\n"
          "  annotate -m model --beside other.tsv test.shard.zst -o page.html\n"
          "  sample -m model --datastore store --cite --json | annotate -o page.html",
          {"model", "adapter", "datastore", "ngrams", "tokenizer", "beside"}}),
      options, annotate);
}
