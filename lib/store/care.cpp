#include "store/care.h"

#include "core/error.h"
#include "store/datastore.h"
#include "store/removal.h"
#include "store/store_report.h"

namespace store {

void RemovalOptions::fields(core::FieldList& f) {
  f("document", documents, "number of a document to remove, counted from 0; may be repeated")
      .between(0, 1e12);
  f("generation", generation,
    "generation of the store to which the document numbers refer; auto: the current one, unless "
    "the last removal had the same numbers")
      .between(1, 0x1p53)
      .or_auto();
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

}  // namespace store
