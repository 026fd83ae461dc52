// build-datastore: builds a datastore of a text that a model can search: a key for each position
// and the token that followed.
//
// FILE: texts, or shards of tokens or of pairs (man 5 shard), several as one; `-` or none is stdin.
// -m: a model's folder. -o, --append: the store (man 5 store). stdout: a record of its contents.

#include "cli/progress.h"
#include "infer/keys/build_together.h"
#include "model/tokenizer_file.h"
#include "store/care.h"

namespace {

using core::Code;

struct BuildDatastoreOptions {
  std::vector<std::string> files;
  infer::StoreBuildOptions build;
  ranks::RankOptions ranks;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "texts, or shards of tokens or pairs; stdin if - or not given");
    build.fields(f);
    ranks.fields(f);
    build.compute.fields(f);
  }
};

bool fill(infer::StoreBuild& build, const cli::Context& context) {
  cli::Progress progress(context, "storing", "tokens", build.count());
  infer::FillCallbacks watch;
  watch.progress = [&](std::uint64_t rows) { progress.update(rows); };
  watch.stop = cli::stop_requested;
  return build.fill(watch);
}

// Warns of an index with low recall, because it impairs all results that use it, and says if the
// default index was replaced for that reason.
void note_index(const BuildDatastoreOptions& options, const cli::Context& context,
    const std::string& folder, const store::Manifest& manifest) {
  cli::warn(context, store::recall_warning(folder, manifest));
  if (options.build.index.empty() && options.build.append.empty())
    cli::note(context, store::choice_note(folder, manifest));
}

// Each of several processes builds a part, and the first merges the parts.
int build_together(
    const BuildDatastoreOptions& options, const std::string& folder, cli::Context context) {
  const auto group = ranks::join_beside(options.ranks, folder);
  nn::set_local_rank(group->local());
  context.quiet = context.quiet || !group->first();
  cli::catch_stop_signals();
  cli::Progress storing(context, "storing", "tokens");
  const auto manifest = cli::watched(context, "merging", "rows", [&](const auto& watch) {
    return infer::build_together({options.build, options.files, folder}, *group,
        cli::stop_requested, storing.counter_with_total(), watch);
  });
  if (!manifest) {
    cli::note(context, "stopped; rerun with the same number of ranks to resume");
    return static_cast<int>(Code::stopped);
  }
  if (!group->first()) return 0;
  note_index(options, context, folder, *manifest);
  cli::write_receipt(context, store::describe(folder, *manifest));
  return 0;
}

int build(const BuildDatastoreOptions& options, const cli::Context& context) {
  const auto folder = options.build.folder(context.output);
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  model::read_texts_for(options.build.model, context.jobs, cli::noter(context));
  if (options.ranks.any()) return build_together(options, folder, context);
  infer::StoreBuild build(options.build, options.files, folder);
  cli::note(context, build.window_note());
  cli::catch_stop_signals();
  if (!fill(build, context)) {
    cli::note(context, fmt::format("stopped after {} rows; rerun to resume", build.rows()));
    return static_cast<int>(Code::stopped);
  }
  const auto manifest = cli::watched(
      context, "indexing", "rows", [&](const auto& watch) { return build.finish(watch); });
  cli::note(context, build.summary(manifest));
  note_index(options, context, folder, manifest);
  cli::write_receipt(context, store::describe(folder, manifest));
  return 0;
}

}  // namespace

int build_datastore_main(int argc, char** argv) {
  BuildDatastoreOptions options;
  return cli::run(argc, argv,
      cli::without_seed({"build-datastore",
          "Build a datastore of a text: the model's key at each position, and the token that "
          "follows it.",
          "  build-datastore -m model train.shard.zst -o store\n"
          "  build-datastore -m model --append store more.shard.zst\n"
          "  build-datastore -m model --part 1/2 train.shard.zst -o part.1",
          {"model", "adapter"}, {}, "folder of the datastore [required without --append]"}),
      options, build);
}
