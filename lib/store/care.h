#pragma once
// Looking after a store that is there: what needs no model.

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/options.h"
#include "store/builder.h"
#include "store/removal.h"

namespace store {

/// The STOREs of a command, and what else it takes.
template <class... More>
struct FolderOptions : More... {
  std::vector<std::string> stores;
  void fields(core::FieldList& f) {
    f.positional("STORE", stores, "folders of datastores");
    (More::fields(f), ...);
  }
  /// The only one. Throws Error{usage}.
  const std::string& store() const {
    if (stores.size() != 1) core::fail(core::Code::usage, "give one STORE");
    return stores[0];
  }
  /// Throws Error{usage} if there are none.
  const std::vector<std::string>& all() const {
    if (stores.empty()) core::fail(core::Code::usage, "give a STORE");
    return stores;
  }
};

/// Which documents go.
struct RemovalOptions {
  std::vector<std::int64_t> documents;
  std::int64_t generation = 0;  ///< 0: not given
  void fields(core::FieldList& f);
  RemovalRequest request() const;
};

/// Of which kind an index is; empty: open.
struct IndexOptions {
  std::string index;
  void fields(core::FieldList& f);
};

/// How parts become one.
struct MergeOptions : IndexOptions {
  std::string keys = "all", prune = "none";
  void fields(core::FieldList& f);
};

/// How recall is measured.
struct RecallOptions {
  std::int64_t k = 1024, nprobe = 32, queries = 200;
  void fields(core::FieldList& f);
};

/// What describe() (store_report.h) says, after every byte was checked, and "verified". Throws as
/// verify() (removal.h).
core::OrderedJson verified(const std::string& folder, const Watch& watch);
/// What describe() says, with the recall that is found now. Throws as Datastore and
/// measure_recall().
core::OrderedJson recalled(const std::string& folder, const RecallOptions& options);

}  // namespace store
