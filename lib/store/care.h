#pragma once
// Maintains an existing store, without a model.

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/options.h"
#include "store/builder.h"
#include "store/removal.h"

namespace store {

/// FolderOptions holds the STORE arguments of a command and its other options.
template <class... More>
struct FolderOptions : More... {
  std::vector<std::string> stores;
  void fields(core::FieldList& f) {
    f.positional("STORE", stores, "folders of datastores");
    (More::fields(f), ...);
  }
  /// Returns the only store. Throws Error{usage} unless there is exactly one.
  const std::string& store() const {
    if (stores.size() != 1) core::fail(core::Code::usage, "takes one STORE");
    return stores[0];
  }
  /// Returns all stores. Throws Error{usage} if there are none.
  const std::vector<std::string>& all() const {
    if (stores.empty()) core::fail(core::Code::usage, "STORE is missing; see --help");
    return stores;
  }
};

/// RemovalOptions says which documents to remove.
struct RemovalOptions {
  std::vector<std::int64_t> documents;
  std::int64_t generation = 0;  ///< 0: not given
  void fields(core::FieldList& f);
  RemovalRequest request() const;
};

/// IndexOptions says which index to make; empty: the default.
struct IndexOptions {
  std::string index;
  void fields(core::FieldList& f);
};

/// MergeOptions says how parts are merged.
struct MergeOptions : IndexOptions {
  std::string keys = "all", prune = "none";
  void fields(core::FieldList& f);
};

/// RecallOptions says how recall is measured.
struct RecallOptions {
  std::int64_t k = 1024, nprobe = 32, queries = 200;
  void fields(core::FieldList& f);
};

/// Checks every byte and returns describe() (store_report.h) with "verified". Throws as verify()
/// (removal.h) does.
core::OrderedJson verified(const std::string& folder, const ProgressCallback& watch);
/// Measures recall and returns describe() with the result. Throws as Datastore and measure_recall()
/// do.
core::OrderedJson recalled(const std::string& folder, const RecallOptions& options);

}  // namespace store
