#pragma once
// Maintains an existing store, without a model.
// Formats a store's report for programs.
// Describes a store from its store.json, without reading other files.

#include "core/options.h"
#include "store/removal.h"

namespace store {

/// FolderOptions holds the STORE arguments of a command and its other options.
template <class... More> struct FolderOptions : More... {
  std::vector<std::string> stores;
  void fields(core::FieldList& f) {
    f.positional("STORE", stores, "folders of datastores");
    (More::fields(f), ...);
  }
  /// Returns the only store. Throws Error{usage} unless there is exactly one.
  const std::string& store() const {
    if (stores.size() != 1) core::bad_usage("takes one STORE");
    return stores[0];
  }
  /// Returns all stores. Throws Error{usage} if there are none.
  const std::vector<std::string>& all() const {
    if (stores.empty()) core::bad_usage("STORE is missing; see --help");
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

/// Checks every byte and returns describe() (care.h) with "verified". Throws as verify()
/// (removal.h) does.
core::OrderedJson verified(const std::string& folder, const ProgressCallback& watch);
/// Measures recall and returns describe() with the result. Throws as Datastore and measure_recall()
/// do.
core::OrderedJson recalled(const std::string& folder, const RecallOptions& options);

/// Returns store (the folder), generation, rows, width, documents, metric, index, recall, k,
/// nprobe, queries, model, tokenizer, fingerprint.
core::OrderedJson describe(const std::string& folder, const Manifest& manifest);
/// Returns a warning where the index was measured to find less than nine in ten of the nearest
/// keys, with what helps; else an empty text.
std::string recall_warning(const std::string& folder, const Manifest& manifest);
/// Returns a note if the index, which the user did not choose, is another than default_index(),
/// whose recall was too low; else an empty text.
std::string choice_note(const std::string& folder, const Manifest& manifest);
/// Returns one record per removed document.
std::vector<core::OrderedJson> describe(const Removal& removal);

/// Info is the report of `store info`.
struct Info {
  /// describe(), vocabulary, removed (documents), query_width, key_scale, calibration, left_out,
  /// bytes (of all files).
  core::OrderedJson report;
  /// Per source: data, rows, documents, part, windows.
  std::vector<core::OrderedJson> sources;
};
/// Returns the description. Throws Error{no_input} as read_manifest() does, and Error{bad_data} if
/// a file is missing.
Info info(const std::string& folder);

}  // namespace store
