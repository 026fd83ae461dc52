#pragma once
// What window options come to for a model and a text: nothing is left open.

#include <cstdint>
#include <string>

#include "core/json.h"
#include "infer/windows/retrieve_options.h"
#include "infer/windows/window_options.h"
#include "model/folder.h"
#include "nn/arch/model.h"
#include "shard/dataset.h"

namespace infer {

struct WindowPlan {
  std::int64_t window = 0, stride = 0;  ///< 1 <= stride <= window
  std::int64_t positions = 0;           ///< the model's; 0: it has no bound, or it is unknown
  bool by_document = false;             ///< each document is a stream of its own
  bool carried = false;  ///< State goes from block to block, nothing is encoded twice
  std::int64_t batch_tokens = 4096;
  /// Fed before a stream's first token, which is then scored too; -1: none.
  std::int64_t beginning = -1;
  /// That token's text, or "none", where it is another than beginning_token() says; else empty.
  std::string begin = {};
  /// Stands in the place of the first token of each window that is not its stream's first; -1: the
  /// text's own does.
  std::int64_t window_token = -1;
  /// Documents are pairs: a stream is a target, read with the source before it.
  bool pairs = false;
  WindowLayout layout = {};
  std::string protocol = {};  ///< whose layout it is; empty: none's
  /// Each document ends with a token that layout.without_mark leaves out where it ends a stream.
  bool marked = false;
  /// Of the tokens that are scored those count that the text's marks say (shard::Header::marked).
  bool learned = false;
  RetrievePlan retrieve = {};  ///< passages that are prepended to windows

  /// Of a window: the tokens fed that can be scored.
  std::int64_t inputs() const { return layout.closed ? window - 1 : window; }
  /// Of them those that are context whatever was scored before.
  std::int64_t unscored() const { return layout.second_half ? window / 2 : 0; }
};

/// For a text without a beginning token. Throws Error{usage} for options that contradict themselves
/// or the model.
WindowPlan plan_windows(const WindowOptions& options, const nn::Model& model,
                        const model::TrainingFacts& facts = {});
/// For this text: with the token that stands before it, if it has one (beginning_token()); of pairs
/// what pair_windows() says, with the options' batch_tokens alone.
WindowPlan plan_windows(const WindowOptions& options, const nn::Model& model,
                        const model::TrainingFacts& facts, const shard::Dataset& data);

/// Says that a window is longer than the model's positions; empty: it is not.
std::string long_window_note(const WindowPlan& plan, const std::string& model);

/// What the keys of a text depend on, for store.json: the names and values of the flags; of pairs
/// {"unit": "pair", "batch-tokens"}.
core::Json to_json(const WindowPlan& plan);

}  // namespace infer
