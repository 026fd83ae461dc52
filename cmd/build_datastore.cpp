// build-datastore: a memory of a text that a model can search: the keys of every position, and the
// tokens that followed.
//
// FILE: shards of tokens or of pairs (man 5 shard), several as one; `-` or none is stdin. -m: a
// model's folder. -o, --append: the store (man 5 store). stdout: a record of what the store holds.

#include <memory>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "infer/fill_store.h"
#include "infer/pair_entries.h"
#include "infer/reach.h"
#include "infer/scorer.h"
#include "model/folder.h"
#include "nn/runtime.h"
#include "store/builder.h"
#include "store/datastore.h"
#include "store/removal.h"
#include "store/report.h"

namespace {

using core::Code;
using core::fail;

struct Options {
  std::vector<std::string> files;
  std::string model, append, index, metric = "ip";
  infer::WindowOptions windows;
  infer::ReachOptions reach;
  std::vector<std::int64_t> remove_documents;
  bool verify = false, recall = false;
  std::int64_t k = 1024, nprobe = 32, queries = 200;
  std::string device = "auto", precision = "float32";
  void fields(core::FieldList& f) {
    f.positional("FILE", files,
                 "shards of tokens or pairs, - or none is stdin; or a store to look after");
    f("model", model, "folder of the model whose keys these are").short_name = 'm';
    f("index", index, "exact, or FAISS's factory string (IVF1024,PQ64x4fs) [chosen from the rows]");
    f("metric", metric, "how near a key is: product, or squared distance", {"ip", "l2"});
    f("append", append, "add to this store");
    windows.fields(f);
    reach.fields(f);
    f.group("Looking after a store");
    f("remove-document", remove_documents, "take this document out of the store (from 0)");
    f("verify", verify, "check every byte of the store");
    f("recall", recall, "the share of the nearest keys that the index finds");
    f("k", k, "nearest keys to compare");
    f("nprobe", nprobe, "inverted lists the index looks into");
    f("queries", queries, "rows of the store that serve as queries");
    f.group("Computing");
    f("device", device, "cpu, cuda, cuda:1, or auto");
    f("precision", precision, "of the weights", {"float32", "float64", "bfloat16"});
  }
};

void write(const cli::Context& context, const std::string& path, const core::OrderedJson& report) {
  core::Output out(path);
  out.write(cli::format_report(context, report));
  out.commit();
}

// A line of progress for each thing that is done, between which a signal stops the program.
store::Watch watch_with(cli::Progress& progress) {
  return [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
    if (cli::stop_requested())
      fail(Code::stopped, "stopped; what was added is kept: run it again to go on");
    progress.set_total(total);
    progress.update(done, what);
  };
}

// The FILE of the options is a store.
int look_after(const Options& options, const cli::Context& context) {
  const int asked = (options.remove_documents.empty() ? 0 : 1) + (options.verify ? 1 : 0) +
                    (options.recall ? 1 : 0);
  if (asked != 1 || options.files.size() != 1 || !options.append.empty())
    fail(Code::usage, "--remove-document, --verify and --recall: one of them, and one store");
  const std::string& folder = options.files[0];
  if (!options.remove_documents.empty()) {
    std::vector<store::Receipt> receipts;
    {
      cli::Progress progress(context, "removing", "rows");
      receipts = store::remove_documents(folder, options.remove_documents, watch_with(progress));
    }
    std::vector<core::OrderedJson> rows;
    for (const auto& receipt : receipts) {
      rows.push_back(store::to_json(receipt));
      rows.back()["fingerprint"] = store::read_manifest(folder).fingerprint();
    }
    core::Output out(context.output);
    out.write(cli::format_table(context, rows));
    out.commit();
    return 0;
  }
  const store::Datastore opened(folder);
  core::OrderedJson report = store::describe(folder, opened.manifest());
  if (options.verify) {
    cli::Progress progress(context, "verifying", "rows");
    store::verify(folder, watch_with(progress));
    report["verified"] = true;
  } else {
    const auto recall = store::measure_recall(opened, options.queries, options.k, options.nprobe);
    report["recall"] = recall.recall, report["k"] = recall.k;
    report["nprobe"] = recall.nprobe, report["queries"] = recall.queries;
  }
  write(context, context.output, report);
  return 0;
}

// A pair is encoded whole: there are no windows.
void check_pair_options(const Options& options, const cli::Context& context) {
  if (options.windows.batch_tokens < 1)
    fail(Code::usage, "--batch-tokens: takes a positive number");
  for (const char* flag : {"window", "stride", "restart", "carry"})
    if (context.was_given(flag))
      fail(Code::usage, "--{}: pairs of sentences have no windows", flag);
}

// What the keys depend on beside model and data, for store.json; `windows` gets resolved.
core::Json windows_of(const Options& options, const model::Loaded& loaded,
                      const shard::Dataset& data, infer::WindowOptions& windows) {
  core::Json json;
  if (data.header().kind == shard::Kind::pairs) {
    json["unit"] = "pair";
    json["batch-tokens"] = windows.batch_tokens;
  } else {
    windows.beginning = infer::beginning_token(data);
    infer::MemoryOptions no_memory;
    no_memory.memory = "none";
    infer::resolve(windows, no_memory, *loaded.model, loaded.facts);
    json = core::Json(core::to_json(windows));
  }
  json["precision"] = options.precision;
  if (const auto reach = options.reach.signature(); !reach.empty()) json["reach"] = reach;
  return json;
}

int build(const Options& options, const cli::Context& context) {
  if (!options.remove_documents.empty() || options.verify || options.recall)
    return look_after(options, context);
  const bool append = !options.append.empty();
  const std::string folder = append ? options.append : context.output;
  if (folder.empty() || (append && !context.output.empty()))
    fail(Code::usage, "it takes -o STORE, or --append STORE");
  if (options.model.empty()) fail(Code::usage, "it takes -m MODEL, whose keys are to be stored");
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
  const torch::Device device = nn::device(options.device);
  const auto loaded = model::load(options.model, device, nn::dtype(options.precision));
  options.reach.apply(*loaded.model);
  const shard::Dataset data(options.files);
  shard::expect_kind(data.header(), {shard::Kind::tokens, shard::Kind::pairs}, data.name());
  const bool pairs = data.header().kind == shard::Kind::pairs;
  if (pairs) check_pair_options(options, context);
  model::check_tokenizer(loaded, data.header(), data.name());
  infer::WindowOptions windows = options.windows;

  store::Plan plan;
  plan.model = loaded.fingerprint.hex();
  plan.tokenizer = model::tokenizer_fingerprint(loaded.tokenizer);
  plan.width = static_cast<std::uint64_t>(loaded.model->architecture->d_key());
  plan.vocabulary = static_cast<std::uint64_t>(loaded.model->vocabulary);
  plan.index = options.index;
  plan.data = data.fingerprint().hex();
  plan.windows = windows_of(options, loaded, data, windows);
  plan.metric = store::metric_from(options.metric, "--metric");
  if (append && !context.was_given("metric")) plan.metric = store::read_manifest(folder).metric;
  if (!plan.index.empty() && plan.index != "exact")
    store::Index::make(plan.index, plan.width, plan.metric);  // refused now, not after the rows

  store::Builder builder(folder, plan, append);
  if (builder.complete()) {
    cli::note(context, fmt::format("{} has these rows: nothing to do", folder));
    write(context, "", store::describe(folder, store::read_manifest(folder)));
    return 0;
  }
  std::unique_ptr<infer::EntryWalk> walk;
  if (pairs) {
    walk = std::make_unique<infer::PairWalk>(*loaded.model, data, windows.batch_tokens, device);
  } else {
    walk = std::make_unique<infer::WindowWalk>(*loaded.model, data, windows, device);
  }
  cli::catch_stop_signals();
  {
    cli::Progress progress(context, "storing", "tokens", walk->count());
    infer::FillWatch watch;
    watch.progress = [&](std::uint64_t rows) { progress.update(rows); };
    watch.stop = cli::stop_requested;
    if (!infer::fill_store(builder, *walk, folder, device, watch)) {
      cli::note(context,
                fmt::format("stopped after {} rows; run it again to go on", builder.rows()));
      return static_cast<int>(Code::stopped);
    }
  }
  store::Manifest manifest;
  {
    cli::Progress progress(context, "indexing", "rows");
    manifest = builder.finish(walk->first_of_documents(), watch_with(progress));
  }
  cli::note(context, fmt::format("{}: {} rows, index {}{}", folder, manifest.rows, manifest.index,
                                 options.index.empty() && !append ? ", chosen from the rows" : ""));
  write(context, "", store::describe(folder, manifest));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"build-datastore",
                   "Makes a datastore of a text: the model's key of every position, and the token "
                   "that followed it.",
                   "  build-datastore -m model train.shard.zst -o store\n"
                   "  build-datastore -m model --append store more.shard.zst\n"
                   "  build-datastore --remove-document 12 store"},
                  options, build);
}
