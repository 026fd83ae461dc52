#pragma once
// Retrieved passages in front of a model's input (--retrieve).

#include "infer/windows/window_options.h"
#include "model/folder.h"

namespace passages {
class PassageIndex;
}

namespace infer {

struct WindowPlan;

/// Options of retrieval. Every `every` tokens, the passage most similar to the last tokens is
/// prepended to the window, in place of its oldest tokens (Ram et al. 2023). With mix > 1, each of
/// `mix` passages is prepended separately, and the probabilities are mixed with weights
/// softmax(scores / temperature) (REPLUG, Shi et al. 2023).
struct RetrieveOptions {
  std::string index;  ///< index file of bm25-search; empty: none
  std::int64_t every = 4, query = 32;
  std::int64_t tokens = 0;  ///< maximum tokens of a passage; 0 (auto): half the window, at most 256
  std::int64_t mix = 1;
  double temperature = 1;
  void fields(core::FieldList& f);
  void turn_fields(core::FieldList& f);  ///< those that TurnOptions uses

  bool any() const { return !index.empty(); }
  /// Sets the windows to advance by `every` without carried State. Throws Error{usage} that names a
  /// conflicting option of `windows`.
  void settle(WindowOptions& windows) const;
};

/// Resolved options for a model, with an open index.
struct RetrievePlan {
  std::shared_ptr<const passages::PassageIndex> index;  ///< null: no retrieval
  std::int64_t every = 4, query = 32, tokens = 0, mix = 1;
  double temperature = 1;

  bool any() const { return index != nullptr; }
  /// Completes settle(): unless a protocol says otherwise, the first window of a stream has `every`
  /// tokens and later ones grow. Time is proportional to the number of passages.
  void put_into(WindowPlan& windows) const;
};

/// Resolves the options for windows of `window` tokens. Throws Error{bad_data} for an index of
/// another tokenizer, Error{usage} for passages that leave no room for the text, and the errors of
/// passages::PassageIndex.
RetrievePlan plan_retrieval(
    const RetrieveOptions& options, std::int64_t window, const model::Loaded& loaded);

}  // namespace infer
