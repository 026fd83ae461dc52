#pragma once
// Finds the nearest entries of a datastore for a context (store search).
// Computes the key of a context as a datastore built from a text would contain it.

#include "infer/windows/window_plan.h"
#include "nn/base/runtime.h"
#include "store/datastore.h"

namespace infer {

/// Returns the windows used for a store's first rows. Throws Error{usage} for a store of pairs,
/// Error{bad_data} for windows that the model does not support.
WindowPlan windows_of(const store::Datastore& store, const model::Loaded& loaded);

struct StoreSearchOptions {
  std::string store;
  std::vector<std::string> contexts;  ///< empty: the lines of stdin
  std::string model, adapter, tokenizer;
  bool ids = false, rescore = false;
  std::int64_t k = 10, nprobe = 32, around = 16;
  nn::ComputeOptions compute;
  void fields(core::FieldList& f);
};

/// A context and its nearest entries.
struct NearEntries {
  core::OrderedJson report;  ///< {"context", "tokens"}
  /// {"score", "token", "value", "document", "row", "before"}.
  std::vector<core::OrderedJson> parts;
};

/// Searches a datastore. Not thread safe.
class StoreSearch {
 public:
  /// Loads the model to `device` and opens the store; a store without an index is searched on the
  /// device. Throws Error{bad_data} for a store of another model or tokenizer, and the errors of
  /// model::load(), store::Datastore and windows_of().
  StoreSearch(const StoreSearchOptions& options, torch::Device device);
  /// Finds the nearest entries of a context. If the model has no tokenizer, texts and tokens are
  /// ids. Throws the errors of TextOrIds, Error{usage} for no tokens, and Error{bad_data} for a
  /// token outside the vocabulary.
  NearEntries find(const std::string& context);
  /// Searches for each context of the options, in order.
  void find_all(const std::function<void(const NearEntries&)>& found);

 private:
  StoreSearchOptions options_;
  torch::Device device_;
  model::Loaded loaded_;
  store::Datastore store_;
  text::TextOrIds text_;
  WindowPlan windows_;
};

}  // namespace infer
