// store: looks into datastores and after them.
//
// STORE: a store's folder (man 5 store); of merge the parts of one. stdout: records, with --json as
// JSON lines.

#include <optional>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "cli/watched.h"
#include "core/error.h"
#include "core/io.h"
#include "store/care.h"
#include "store/merge.h"
#include "store/removal.h"
#include "store/store_info.h"
#include "store/store_report.h"

namespace {

using core::Code;
using core::fail;

// STOREs, and what a verb adds to them.
template <class... More>
struct Options : More... {
  std::vector<std::string> stores;
  void fields(core::FieldList& f) {
    f.positional("STORE", stores, "folders of datastores");
    (More::fields(f), ...);
  }
  // The only one.
  const std::string& store() const {
    if (stores.size() != 1) fail(Code::usage, "give one STORE");
    return stores[0];
  }
  const std::vector<std::string>& all() const {
    if (stores.empty()) fail(Code::usage, "give a STORE");
    return stores;
  }
};

struct DocumentOptions {
  std::vector<std::int64_t> documents;
  void fields(core::FieldList& f) {
    f("document", documents, "number of a document, from 0; again for more").between(0, 1e12);
  }
};

struct IndexOptions {
  std::string index;
  void fields(core::FieldList& f) {
    f("index", index,
      "exact, or FAISS's factory string (IVF1024,PQ64x4fs) [as it is; of merge by the rows]");
  }
};

int info(const Options<>& options, const cli::Context& context) {
  std::string text;
  for (const auto& folder : options.all()) {
    const auto found = store::info(folder);
    text += cli::format_parts(context, found.report, found.sources);
  }
  cli::write_output(context, text);
  return 0;
}

int verify(const Options<>& options, const cli::Context& context) {
  core::Output out(context.output);  // first: it must not stand in the store
  for (const auto& folder : options.all())
    out.write(cli::format_report(
        context, cli::watched(context, "verifying", "rows",
                              [&](const auto& watch) { return store::verified(folder, watch); })));
  out.commit();
  return 0;
}

int recall(const Options<store::RecallOptions>& options, const cli::Context& context) {
  core::Output out(context.output);
  for (const auto& folder : options.all())
    out.write(cli::format_report(context, store::recalled(folder, options)));
  out.commit();
  return 0;
}

int rebuild(const Options<IndexOptions>& options, const cli::Context& context) {
  core::Output out(context.output);
  const auto manifest = cli::watched(context, "indexing", "rows", [&](const auto& watch) {
    return store::rebuild_index(options.store(), options.index, watch);
  });
  out.write(cli::format_report(context, store::describe(options.store(), manifest)));
  out.commit();
  return 0;
}

int remove_documents(const Options<DocumentOptions>& options, const cli::Context& context) {
  if (options.documents.empty()) fail(Code::usage, "give the --document that is to go");
  core::Output out(context.output);
  std::optional<store::Removal> removal;
  cli::watched(context, "removing", "rows", [&](const auto& watch) {
    removal.emplace(options.store(), options.documents, watch);
  });
  out.write(cli::format_table(context, store::describe(*removal)));
  out.commit();
  removal->done();  // the receipts were given
  return 0;
}

int merge(const Options<IndexOptions>& options, const cli::Context& context) {
  const auto& parts = options.all();
  if (context.output.empty()) fail(Code::usage, "it takes -o STORE");
  cli::catch_stop_signals();
  const auto manifest = cli::watched(context, "merging", "rows", [&](const auto& watch) {
    return store::merge(parts, context.output, options.index, watch);
  });
  cli::write_receipt(context, store::describe(context.output, manifest));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options<> looked_at, checked;
  Options<store::RecallOptions> measured;
  Options<IndexOptions> indexed, merged;
  Options<DocumentOptions> removed;
  return cli::run(argc, argv,
                  {"store", "Looks into datastores and after them.", "  store info store"},
                  {cli::command("info", "Say what a store holds.",
                                "  store info --json store | jq .rows", looked_at, info),
                   cli::command("verify", "Check every byte; exit 65 if one is wrong.",
                                "  store verify store", checked, verify),
                   cli::command("recall", "Compare the index with exact search.",
                                "  store recall --nprobe 8 store", measured, recall),
                   cli::command("rebuild", "Make the index anew from the keys.",
                                "  store rebuild --index IVF1024,SQ8 store", indexed, rebuild),
                   cli::command("remove", "Take documents out of a store, for good.",
                                "  store remove --document 12 store", removed, remove_documents),
                   cli::command("merge", "Make one store of all parts of a text.",
                                "  store merge part.1 part.2 -o store", merged, merge)});
}
