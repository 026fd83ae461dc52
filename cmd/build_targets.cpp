// build-targets: writes a datastore's prediction for each token of the text that it was built from,
// for train --targets.
//
// FILE: shards of tokens, several as one; `-` or none is stdin. -d: a datastore (man 5 store) of
// exactly this text. stdout: a shard of vectors (man 5 shard), one per token: token ids, then their
// probabilities.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "store/targets.h"

namespace {

struct BuildTargetsOptions {
  std::vector<std::string> files;
  std::string store;
  store::TargetOptions targets;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens; stdin if - or not given");
    f("datastore", store, "folder of a datastore of this text").required = true;
    targets.fields(f);
  }
};

int build_targets(const BuildTargetsOptions& options, const cli::Context& context) {
  cli::refuse_binary_to_terminal(context);
  const store::Datastore datastore(options.store);
  const shard::Dataset data(options.files);
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  core::Output out(context.output);
  shard::Writer writer(out, store::targets_header(options.targets),
      {store::targets_provenance(datastore, data, options.targets)},
      static_cast<int>(context.jobs));
  cli::Progress progress(context, "searching", "tokens", data.size());
  store::write_targets(datastore, data, options.targets, writer, progress.counter());
  writer.finish();
  out.commit();
  return 0;
}

}  // namespace

int build_targets_main(int argc, char** argv) {
  BuildTargetsOptions options;
  return cli::run(argc, argv,
      cli::without_seed({"build-targets",
          "Write, for each token of a datastore's text, the distribution given by the other tokens: "
          "the targets of train --targets.",
          "  build-targets --datastore store train.shard.zst -o targets.shard.zst\n"
          "  train --targets targets.shard.zst train.shard.zst -o decoder",
          {"datastore"}}),
      options, build_targets);
}
