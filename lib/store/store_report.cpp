#include "store/store_report.h"

#include "store/index.h"

namespace store {
namespace {

// Returns the value of --keys that made the store.
std::string kept_keys(const Manifest& manifest) {
  if (!manifest.keyed()) return "none";
  return manifest.projected() ? fmt::format("pca:{}", manifest.width) : "all";
}

}  // namespace

core::OrderedJson describe(const std::string& folder, const Manifest& manifest) {
  core::OrderedJson report;
  report["store"] = folder, report["generation"] = manifest.generation;
  report["rows"] = manifest.rows, report["width"] = manifest.width;
  report["documents"] = manifest.documents, report["metric"] = name_of(manifest.metric);
  report["index"] = manifest.index, report["keys"] = kept_keys(manifest);
  report["recall"] = manifest.recall.recall, report["k"] = manifest.recall.k;
  report["nprobe"] = manifest.recall.nprobe, report["queries"] = manifest.recall.queries;
  report["model"] = manifest.model, report["tokenizer"] = manifest.tokenizer;
  report["fingerprint"] = manifest.fingerprint();
  return report;
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

}  // namespace store
