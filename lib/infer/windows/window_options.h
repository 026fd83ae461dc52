#pragma once
// Options of scoring: windows over the stream.
// Evaluation protocols of other programs: layout of windows, and counting of tokens (--protocol).
// Retrieved passages in front of a model's input (--retrieve).
// Options that change how far a model's layers look back at test time.

#include "model/folder.h"

namespace passages {
class PassageIndex;
}

namespace infer {

using torch::Tensor;

/// Layout of windows with W tokens and stride S on a stream. Default: the first window scores all
/// its targets, each later one its last S, and the rest forms a shorter window.
struct WindowLayout {
  /// Targets are tokens of the window itself: W tokens have W - 1 targets.
  bool closed = false;
  bool grows = false;       ///< the first window has length S, later ones grow to W
  bool last_full = false;   ///< the last window begins earlier, so that its length is W
  bool whole_only = false;  ///< tokens that fill no whole window are not scored
  /// The first W / 2 inputs of a window are always context.
  bool second_half = false;
  /// Discounts a window by one token if the previous window contained its first token: the window's
  /// mean counts for one token less than it scores.
  bool one_less = false;
  /// The end-of-document token at the end of a stream is removed.
  bool without_mark = false;
};

/// Default BOS token of a text if --bos is unset. template_only: the token of the tokenizer's
/// template, or none. template_or_mark: that token, else the end-of-document token. mark: the
/// end-of-document token.
enum class Beginning { template_only, template_or_mark, mark };

/// Settings of a protocol; explicit options take precedence.
struct Protocol {
  std::string name;
  WindowLayout layout = {};
  std::int64_t window = 0;  ///< 0: the model's positions; upper limit otherwise
  std::int64_t stride = 0;  ///< 0: the window; upper limit otherwise
  Beginning beginning = Beginning::template_only;
  bool by_document = false;     ///< each document is a separate stream
  bool begins_windows = false;  ///< later windows begin with the BOS token too
};

/// Returns the protocols hf, lm-eval, llama.cpp and fairseq.
const std::vector<Protocol>& protocols();
/// Returns "none" and the names of the protocols.
std::vector<std::string> protocol_names();
/// Returns the protocol; null for "none". Throws Error{usage} for an unknown name.
const Protocol* find_protocol(const std::string& name);

/// Sliding windows over a stream. The first window scores all its targets; each later one starts
/// `stride` tokens further and scores its last `stride` tokens. A WindowPlan is the resolved form
/// for a model and a text.
struct WindowOptions {
  std::int64_t window = 0;        ///< tokens in a window; 0: the training segment
  std::int64_t stride = 0;        ///< 0 (auto): window
  std::string restart = "auto";   ///< "document": each document is a separate stream
  std::string carry = "auto";     ///< "on": carries State from block to block, without re-encoding
  std::string begin = "auto";     ///< BOS token of a stream: auto, none, or a token's text
  std::string bos_at = "auto";    ///< "window": BOS token before every later window too
  std::string protocol = "none";  ///< sets the other options if they are not given
  std::int64_t batch_tokens = 4096;  ///< maximum tokens of the windows in one forward pass
  void fields(core::FieldList& f) { fields(f, true); }
  /// Lists the options except protocol, which only evaluations have. `documents` false: texts have
  /// no documents, so restart is omitted.
  void fields(core::FieldList& f, bool documents);
  /// Lists protocol; `names`: its accepted values.
  void protocol_field(core::FieldList& f, std::vector<std::string> names = protocol_names());
  /// Resolves restart and bos_at.
  void settle();
  /// Throws Error{usage} if an option is set that a pair, which is read whole, does not have.
  void refuse_for_pairs() const;
};

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

/// Options of programs that read a text with a model; see nn::LayerReach and nn::SlotBound.
struct LayerReachOptions {
  std::string layer_memory;
  std::int64_t clamp_length = -1;
  std::string same_length = "auto";
  std::int64_t context_slots = 0;
  std::string evict = "oldest";
  void fields(core::FieldList& f);

  /// Applies each option to the models that support it. Throws Error{usage} for an option that no
  /// model supports and for an invalid value.
  void apply(const std::vector<nn::Model*>& models) const;
  /// Returns the differences from training for a result's signature: "|layer-memory:..." or "".
  std::string signature() const;
};

}  // namespace infer
