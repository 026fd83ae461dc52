// store: inspects and maintains datastores.
//
// STORE: a store's folder (man 5 store); for merge the parts of a store. TEXT: contexts for search;
// if none, the lines of stdin. stdout: records, with --json as JSON lines.

#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/stores/store_search.h"
#include "nn/base/runtime.h"
#include "store/care.h"
#include "store/merge.h"
#include "store/removal.h"
#include "store/store_plan.h"

namespace {

// Writes text(folder) of each folder. The output is opened first: it must not be inside a store.
template <class Text>
int say(const cli::Context& context, const std::vector<std::string>& folders, Text text) {
  core::Output out(context.output);
  for (const auto& folder : folders) out.write(text(folder));
  out.commit();
  return 0;
}

int store_info(const store::FolderOptions<>& options, const cli::Context& context) {
  return say(context, options.all(), [&](const auto& folder) {
    const auto found = store::info(folder);
    return cli::format_parts(context, found.report, found.sources);
  });
}

int search(const infer::StoreSearchOptions& options, const cli::Context& context) {
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  infer::StoreSearch search(options, nn::device(options.compute.device));
  core::Output out(context.output);
  search.find_all([&](const infer::NearEntries& found) {
    out.write(cli::format_typed_parts(context, found.report, found.parts));
    out.flush();
  });
  out.commit();
  return 0;
}

int plan(const store::PlanOptions& options, const cli::Context& context) {
  cli::write_report(context, store::plan(options));
  return 0;
}

int verify_stores(const store::FolderOptions<>& options, const cli::Context& context) {
  return say(context, options.all(), [&](const auto& folder) {
    return cli::watched(context, "verifying", "rows", [&](const auto& watch) {
      return cli::format_report(context, store::verified(folder, watch));
    });
  });
}

int recall(const store::FolderOptions<store::RecallOptions>& options, const cli::Context& context) {
  return say(context, options.all(), [&](const auto& folder) {
    return cli::format_report(context, store::recalled(folder, options));
  });
}

int rebuild(const store::FolderOptions<store::IndexOptions>& options, const cli::Context& context) {
  return say(context, {options.store()}, [&](const auto& folder) {
    return cli::watched(context, "indexing", "rows", [&](const auto& watch) {
      const auto manifest =
          store::rebuild_index(folder, options.index, watch, cli::catch_stop_signals);
      cli::warn(context, store::recall_warning(folder, manifest));
      return cli::format_report(context, store::describe(folder, manifest));
    });
  });
}

int remove_documents(
    const store::FolderOptions<store::RemovalOptions>& options, const cli::Context& context) {
  if (options.documents.empty())
    core::bad_usage("--document is missing; give the documents to remove");
  core::Output out(context.output);
  std::optional<store::Removal> removal;
  cli::watched(context, "removing", "rows", [&](const auto& watch) {
    // The receipts are written first: a signal after that finds the documents removed.
    removal.emplace(options.store(), options.request(), watch, cli::catch_stop_signals);
  });
  if (removal->repeated()) cli::warn(context, removal->repetition());
  out.write(cli::format_table(context, store::describe(*removal)));
  out.commit();
  removal->done();  // the receipts are written
  return 0;
}

int merge(const store::FolderOptions<store::MergeOptions>& options, const cli::Context& context) {
  const auto& parts = options.all();
  if (context.output.empty()) core::bad_usage("it takes -o STORE");
  cli::catch_stop_signals();
  const auto manifest = cli::watched(context, "merging", "rows", [&](const auto& watch) {
    return store::merge(parts, context.output, options.index, watch,
        store::parse_reduction(options.keys, options.prune));
  });
  cli::warn(context, store::recall_warning(context.output, manifest));
  if (options.index.empty()) cli::note(context, store::choice_note(context.output, manifest));
  cli::write_receipt(context, store::describe(context.output, manifest));
  return 0;
}

}  // namespace

int store_main(int argc, char** argv) {
  store::FolderOptions<> looked_at, checked;
  infer::StoreSearchOptions sought;
  store::PlanOptions planned;
  store::FolderOptions<store::RecallOptions> measured;
  store::FolderOptions<store::IndexOptions> indexed;
  store::FolderOptions<store::MergeOptions> merged;
  store::FolderOptions<store::RemovalOptions> removed;
  return cli::run(argc, argv, {"store", "Inspect and maintain datastores.", "  store info store"},
      {cli::command("info", "Describe a store.", "  store info --json store | jq .rows", looked_at,
           store_info),
          cli::command("search", "Show the nearest entries of a context.",
              "  store search -m model store 'Once upon a'", sought, search,
              {"model", "adapter", "tokenizer"}),
          cli::command("plan", "Estimate the size of a store before it is built.",
              "  store plan --entries 100M --width 512 --index IVF16384,PQ64x4fs", planned, plan),
          cli::command("verify", "Check every byte; exit with 65 on damage.",
              "  store verify store", checked, verify_stores),
          cli::command("recall", "Measure the recall of the index against exact search.",
              "  store recall --nprobe 8 store", measured, recall),
          cli::command("rebuild", "Rebuild the index from the keys.",
              "  store rebuild --index IVF1024,SQ8 store", indexed, rebuild),
          cli::command("remove", "Remove documents from a store permanently.",
              "  store remove --document 12 store", removed, remove_documents),
          cli::command("merge", "Merge the stores of all parts of a text.",
              "  store merge part.1 part.2 -o store", merged, merge)});
}
