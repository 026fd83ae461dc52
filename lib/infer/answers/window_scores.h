#pragma once
// Scores the tokens of windows with all memories, and tells whether each was the most probable.
// Encodes a common prefix once for several texts.

#include "infer/answers/answer.h"
#include "infer/decode/decode_engine.h"

namespace infer {

/// A window whose tokens from `first_scored` on are scored.
struct WindowToScore {
  Window window;
  bool fresh = true;     ///< clears the memories before the window
  Window past = {};      ///< tokens to store in the memories first; f undefined: none
  TokenScores* to = {};  ///< destination, to which scores are appended
  /// Weights at its beginning if it is fresh; null: the first ones.
  std::shared_ptr<const OnlineWeights> learned = {};
  bool continues = false;  ///< learns weights only if plan.weights_follow
  /// f (n, d) of all tokens of `to`, for each further model.
  const std::vector<torch::Tensor>* other_f = {};
};

/// Scores windows. Not thread safe.
class WindowScores {
 public:
  /// `vocabulary`: its number of tokens; the head's further rows are padding. All
  /// references must outlive the object.
  WindowScores(nn::Model& model, nn::Head& head, const WindowPlan& windows,
      const MemoryPlan& memory, std::int64_t vocabulary, TokenWants wants);

  /// Scores windows of one stream in order. Throws Error{bad_data} if a score is NaN.
  void score(const std::vector<WindowToScore>& windows);
  /// Divides score() into pieces; null: whole windows. It must outlive the calls.
  void go_at(Pace* pace) { pace_ = pace; }
  /// Returns whether tokens before a window affect its scores.
  bool remembers() const { return memory_.remembers(); }
  bool learns() const { return plan_.online; }
  /// Returns the weights after a context; see WeightsLearner. `ensemble`: f of each further model.
  std::shared_ptr<const OnlineWeights> learn(const std::vector<std::int64_t>& context,
      const nn::Hidden& hidden, const std::vector<torch::Tensor>& ensemble) const;

 private:
  std::int64_t piece(std::int64_t block) const;
  void end_piece(std::int64_t rows) const;
  void score_alone(const std::vector<WindowToScore>& windows);
  void score_with_memory(
      const WindowToScore& of, const StreamMemory::Asked* asked, std::int64_t offset);
  void add(const torch::Tensor& log_probs, const torch::Tensor& targets, TokenScores& to) const;
  void add_details(const torch::Tensor& log_probs, const torch::Tensor& targets,
      const torch::Tensor& shares, TokenScores& to) const;

  nn::Model& model_;
  nn::Head& head_;
  std::int64_t window_;
  const char* doubt_;  // see DynamicOptions
  MemoryPlan plan_;
  std::vector<std::shared_ptr<const EnsembleModel>> ensemble_;
  StreamMemory memory_;
  std::int64_t vocabulary_, head_vocabulary_;
  TokenWants wants_;
  Pace* pace_ = nullptr;
};

/// A non-empty stem and its branches. Each branch continues from a copy of the state after the
/// stem; a branch may be empty.
struct TokenTree {
  std::vector<std::int64_t> stem;
  std::vector<std::vector<std::int64_t>> branches;

  std::int64_t longest_branch() const;
};

/// f and g of a tree's tokens: (T, d) each.
struct EncodedTree {
  nn::Hidden stem;
  std::vector<nn::Hidden> branches;
};

/// Encodes trees. Not thread safe.
class TreeEncoder {
 public:
  /// If the window carries State, a stem may have any length and is encoded in blocks of one
  /// stride; otherwise a stem and its longest branch form a window. If layers keep memories and
  /// State is not carried, the State does not contain the whole stem, so each branch is encoded
  /// together with the stem. Engine and model must outlive the encoder.
  TreeEncoder(Engine& engine, const nn::Model& model, const WindowPlan& plan);

  /// Returns whether `one_more` fits into one call with `trees`: together they have about
  /// plan.batch_tokens at most. If State forgets, which affects all rows at once, no other tree
  /// fits.
  bool fits(std::span<const TokenTree> trees, const TokenTree& one_more) const;
  /// Encodes trees; results are independent of each other, except for the rounding of sums. With
  /// `keep`, the state after the stem of a single tree remains for the next call, which may reuse
  /// it for an equal stem.
  std::vector<EncodedTree> encode(std::span<const TokenTree> trees, bool keep = false);
  /// Divides calls into pieces; null: whole calls. It must outlive them. Calls whose result depends
  /// on what they read together are not divided.
  void go_at(Pace* pace) { pace_ = pace; }
  /// Encodes the next block of one text and returns its outputs and keys.
  nn::Hidden go_on(const std::vector<std::int64_t>& block, bool fresh);

 private:
  std::vector<EncodedTree> encode_again(std::span<const TokenTree> trees);
  void open(std::int64_t rows);
  std::vector<nn::Hidden> encode_stems(std::span<const TokenTree> trees);
  std::vector<nn::Hidden> feed(const std::vector<const std::vector<std::int64_t>*>& rows);

  Engine& engine_;
  WindowPlan plan_;
  bool forgets_, in_calls_, again_;
  bool fed_ = false;
  Pace* pace_ = nullptr;
  std::vector<std::int64_t> kept_;  // stem in the engine's single row; empty: none
  nn::Hidden kept_hidden_;          // of kept_
};

}  // namespace infer
