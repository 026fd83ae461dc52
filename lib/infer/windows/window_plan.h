#pragma once
// Window options resolved for a model and a text.
// Opens the tokenizer of a model that reads texts, and selects the BOS token of a text (--bos).

#include "batch/rows.h"
#include "infer/windows/dynamic.h"
#include "infer/windows/window_options.h"

namespace infer {

struct WindowPlan {
  std::int64_t window = 0, stride = 0;  ///< 1 <= stride <= window
  std::int64_t positions = 0;           ///< of the model; 0: unlimited or unknown
  bool by_document = false;             ///< each document is a separate stream
  bool carried = false;                 ///< carries State from block to block, without re-encoding
  std::int64_t batch_tokens = 4096;
  /// BOS token before a stream's first token, which is then scored too; -1: none.
  std::int64_t beginning = -1;
  /// Text of the BOS token, or "none", if it differs from beginning_token(); else empty.
  std::string begin = {};
  /// Token that replaces the first token of each window after its stream's first; -1: none.
  std::int64_t window_token = -1;
  /// Documents are pairs: a stream is a target, read after its source.
  bool pairs = false;
  WindowLayout layout = {};
  std::string protocol = {};  ///< name of the protocol of the layout; empty: none
  /// Each document ends with a token, which layout.without_mark removes at the end of a stream.
  bool marked = false;
  /// Only scored tokens that the text marks are counted (shard::Header::marked).
  bool learned = false;
  RetrievePlan retrieve = {};  ///< passages to prepend to windows
  DynamicOptions dynamic = {};

  /// Returns the number of tokens of a window that can be scored.
  std::int64_t inputs() const { return layout.closed ? window - 1 : window; }
  /// Returns the number of these that are always context.
  std::int64_t unscored() const { return layout.second_half ? window / 2 : 0; }
};

/// Resolves the options for a text without a BOS token. Throws Error{usage} for options that
/// contradict each other or the model.
WindowPlan plan_windows(
    const WindowOptions& options, const nn::Model& model, const model::TrainingFacts& facts = {});
/// Resolves the options for `data`, with its BOS token, if any (beginning_token()); for pairs,
/// returns pair_windows() with the options' batch_tokens.
WindowPlan plan_windows(const WindowOptions& options, const nn::Model& model,
    const model::TrainingFacts& facts, const shard::Dataset& data);

/// Numbers of texts whose beginning was cut because they exceeded the window.
struct CutTexts {
  std::uint64_t texts = 0, cut = 0;        ///< all texts, and cut ones
  std::uint64_t tokens = 0, left_out = 0;  ///< of the cut texts: all tokens, and tokens cut

  /// Counts a text of which `left_out` tokens are cut.
  void add(std::int64_t tokens, std::int64_t left_out);
  /// Returns a note about `what`, such as "prompts"; empty if none was cut.
  std::string note(const char* what, std::int64_t window) const;
};

/// Returns a note if the window exceeds the model's positions; else empty.
std::string long_window_note(const WindowPlan& plan, const std::string& model);

/// Returns the settings that affect a text's keys, for store.json: names and values of the flags;
/// for pairs, {"unit": "pair", "batch-tokens"}.
core::Json to_json(const WindowPlan& plan);

/// Returns the model's tokenizer. `what` says what it is for, such as "encode texts". Throws
/// Error{bad_data} for a model without a tokenizer, or with more tokens than the model has.
text::TokenizerPtr tokenizer_of(const model::Loaded& loaded, const char* what);

/// Returns the BOS token for "auto" under a protocol, or without one (null): the protocol's token;
/// nullopt if documents begin without change; -1: none. Throws Error{usage} if the protocol
/// requires a token that the tokenizer lacks.
std::optional<std::int64_t> open_beginning(
    const Protocol* protocol, const text::Tokenizer* tokenizer, const std::string& name);

}  // namespace infer
