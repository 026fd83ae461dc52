#pragma once
// Passages of other texts in front of what a model reads: --retrieve.

#include <cstdint>
#include <memory>
#include <string>

#include "core/options.h"
#include "infer/windows/window_options.h"
#include "model/folder.h"

namespace passages {
class PassageIndex;
}

namespace infer {

struct WindowPlan;

/// Before every so many tokens the passage that is most like the last of the text stands in front
/// of the window, of which it takes the room of the oldest tokens (Ram et al. 2023). With mix > 1
/// each of so many passages stands there alone, and the probabilities are mixed with weights
/// softmax(scores / temperature) (Shi et al. 2023, REPLUG).
struct RetrieveOptions {
  std::string index;  ///< a file of bm25-search; empty: none
  std::int64_t every = 4, query = 32;
  std::int64_t tokens = 0;  ///< most of a passage; 0 (auto): half the window, at most 256
  std::int64_t mix = 1;
  double temperature = 1;
  void fields(core::FieldList& f);

  bool any() const { return !index.empty(); }
  /// Windows advance by `every`, and nothing is carried. Throws Error{usage} naming an option of
  /// `windows` that says otherwise.
  void settle(WindowOptions& windows) const;
};

/// What they come to for a model: the index is open.
struct RetrievePlan {
  std::shared_ptr<const passages::PassageIndex> index;  ///< null: nothing is retrieved
  std::int64_t every = 4, query = 32, tokens = 0, mix = 1;
  double temperature = 1;

  bool any() const { return index != nullptr; }
  /// What settle() left to say: the first window of a stream has `every` tokens, later ones grow,
  /// as long as no protocol says otherwise. Each window takes as much time as it has passages.
  void put_into(WindowPlan& windows) const;
};

/// For windows of so many tokens. Throws Error{bad_data} for an index of another tokenizer,
/// Error{usage} for passages that leave no room for a text, and as passages::PassageIndex does.
RetrievePlan plan_retrieval(const RetrieveOptions& options, std::int64_t window,
                            const model::Loaded& loaded);

}  // namespace infer
