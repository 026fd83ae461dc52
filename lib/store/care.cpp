#include "store/care.h"

#include <filesystem>

#include "store/datastore.h"

namespace store {
namespace {

// Returns the value of --keys that made the store.
std::string kept_keys(const Manifest& manifest) {
  if (!manifest.keyed()) return "none";
  return manifest.projected() ? fmt::format("pca:{}", manifest.width) : "all";
}

std::uint64_t bytes_of(const std::string& folder, const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& name : files_of(manifest)) {
    std::error_code missing;
    bytes += std::filesystem::file_size(folder + "/" + name, missing);
    if (missing) core::bad_data("{}/{}: cannot read: {}", folder, name, missing.message());
  }
  return bytes;
}

}  // namespace

void RemovalOptions::fields(core::FieldList& f) {
  f("document", documents, "number of a document to remove, counted from 0; may be repeated")
      .between(0, 1e12);
  f("generation", generation,
      "generation of the store to which the document numbers refer; auto: the current one, or the "
      "one before the last removal if that removal had the same numbers")
      .auto_or(1, 0x1p53);
}

RemovalRequest RemovalOptions::request() const {
  if (generation == 0) return {documents};
  return {documents, static_cast<std::uint64_t>(generation)};
}

void IndexOptions::fields(core::FieldList& f) {
  f("index", index,
      "exact, or a factory string of FAISS, such as IVF1024,PQ64x4fs [the current type; "
      "merge: the choice of build-datastore]");
}

void MergeOptions::fields(core::FieldList& f) {
  IndexOptions::fields(f);
  f("keys", keys,
      "stored keys: all: all dimensions; pca:D: the first D principal components; none: only the "
      "codes of the index");
  f("prune", prune,
      "merge, merge:K: merge each entry with those of its K nearest entries that have the same "
      "label");
}

void RecallOptions::fields(core::FieldList& f) {
  f("k", k, "nearest neighbours compared").between(1, 65536);
  f("nprobe", nprobe, "inverted lists probed per query (nprobe)").between(1, 1e6);
  f("queries", queries, "rows of the store used as queries").between(1, 1e6);
}

core::OrderedJson verified(const std::string& folder, const ProgressCallback& watch) {
  const Datastore opened(folder);
  verify(folder, watch);
  core::OrderedJson report = describe(folder, opened.manifest());
  report["verified"] = true;
  return report;
}

core::OrderedJson recalled(const std::string& folder, const RecallOptions& options) {
  const Datastore opened(folder);
  core::OrderedJson report = describe(folder, opened.manifest());
  const Recall found = measure_recall(opened, options.queries, options.k, options.nprobe);
  report["recall"] = found.recall, report["k"] = found.k;
  report["nprobe"] = found.nprobe, report["queries"] = found.queries;
  return report;
}

core::OrderedJson describe(const std::string& folder, const Manifest& manifest) {
  return {{"store", folder}, {"generation", manifest.generation}, {"rows", manifest.rows},
      {"width", manifest.width}, {"documents", manifest.documents},
      {"metric", name_of(manifest.metric)}, {"index", manifest.index},
      {"keys", kept_keys(manifest)}, {"recall", manifest.recall.recall}, {"k", manifest.recall.k},
      {"nprobe", manifest.recall.nprobe}, {"queries", manifest.recall.queries},
      {"model", manifest.model}, {"tokenizer", manifest.tokenizer},
      {"fingerprint", manifest.fingerprint()}};
}

std::string recall_warning(const std::string& folder, const Manifest& manifest) {
  const auto& found = manifest.recall;
  if (found.queries == 0 || found.recall >= kEnoughRecall) return "";
  const bool keyed = manifest.keyed();
  return fmt::format(
      "{}: index {} has a low recall: {:.2f} of the {} nearest keys (nprobe {}); build it with "
      "{}more bytes per code (a larger PQ, or SQ8), or search with a larger --nprobe{}",
      folder, manifest.index, found.recall, found.k, found.nprobe,
      keyed ? "--index exact or with " : "",
      keyed ? "; --rescore corrects the scores of the entries found" : "");
}

std::string choice_note(const std::string& folder, const Manifest& manifest) {
  const std::string first = default_index(manifest.rows, manifest.width, manifest.keyed());
  if (manifest.index == first) return "";
  const std::string other =
      fmt::format("{}: index {} was chosen, since {} finds less than {} of the nearest keys",
          folder, manifest.index, first, kEnoughRecall);
  return manifest.exact() ? other + "; every search reads all keys; --index chooses otherwise"
                          : other;
}

std::vector<core::OrderedJson> describe(const Removal& removal) {
  std::vector<core::OrderedJson> rows;
  for (const auto& receipt : removal.receipts()) {
    rows.push_back(to_json(receipt));
    rows.back()["fingerprint"] = removal.manifest().fingerprint();
    rows.back()["old_files"] = "deleted";
  }
  return rows;
}

Info info(const std::string& folder) {
  const Manifest manifest = read_manifest(folder);
  Info info;
  info.report = describe(folder, manifest);
  const auto& calibration = manifest.calibration;
  info.report.update({{"vocabulary", manifest.vocabulary}, {"removed", manifest.removed.size()},
      {"query_width", manifest.query_width()}, {"key_scale", manifest.key_scale},
      {"calibration", calibration ? to_json(*calibration) : core::OrderedJson()},
      {"left_out", manifest.whole() ? "nothing" : "some"}, {"bytes", bytes_of(folder, manifest)}});
  for (const Source& source : manifest.sources)
    info.sources.push_back(
        {{"data", source.data}, {"rows", source.rows}, {"documents", source.documents},
            {"part", source.part ? fmt::format("{}/{}", source.part->number, source.part->of) : ""},
            {"windows", source.windows}});
  return info;
}

}  // namespace store
