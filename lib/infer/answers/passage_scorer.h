#pragma once
// Scores passages with a model and its memories; encodes a context once for all its continuations.

#include "infer/answers/window_scores.h"
#include "infer/windows/retriever.h"

namespace infer {

/// Scores passages; each has separate memories. A text gets the scores that infer::score() gives
/// for its tokens as a data set. A continuation is scored in the last window of its context and
/// itself: local memory covers that window; long memory and the cache cover earlier tokens, encoded
/// in successive windows. Weights that are learned online learn from the context first. With
/// retrieved passages (windows.retrieve), the scorer searches at the
/// end of the context and at regular intervals of a continuation, and encodes each continuation
/// separately. Not thread safe.
class PassageScorer {
 public:
  /// `vocabulary` and `wants`: see WindowScores. All references must outlive the scorer. The BOS
  /// token of `windows` is ignored.
  PassageScorer(nn::Model& model, Engine& engine, const WindowPlan& windows,
      const MemoryPlan& memory, std::int64_t vocabulary, TokenWants wants = {});
  ~PassageScorer();

  /// Returns the scores of each passage's continuations; for a text, the scores of all tokens but
  /// the first. If all passages have one context, the state after it remains for the next call. No
  /// continuation may be longer than longest(). `pace` divides the work; null: whole batches.
  std::vector<std::vector<TokenScores>> score(
      std::span<const Passage> passages, Pace* pace = nullptr);
  /// Returns the maximum number of tokens in a continuation.
  std::int64_t longest() const;
  /// Returns how many contexts were cut because a context and its longest continuation exceeded the
  /// window, over all calls.
  const CutTexts& cut_contexts() const { return cut_; }

 private:
  using Tokens = std::vector<std::int64_t>;
  // A tree and its tokens to score.
  struct Work {
    TokenTree tree;
    std::int64_t position = 0;                 // of the first token of the stem
    std::int64_t number = 0;                   // of the window
    Window past = {};                          // see WindowToScore
    std::vector<const Tokens*> continuations;  // of the branches
    std::vector<TokenScores*> to;              // of each branch; for a window of a text, one
                                               // element
    // A text's window has no branches.
    Tokens targets = {};
    std::int64_t first_scored = 0;
    bool fresh = true;
    bool continues = false;                      // see WindowToScore
    std::optional<std::int64_t> first_new = {};  // see Window
    std::int64_t prefix = 0;                     // tokens of the stem that belong to no text
    Tokens before = {};                          // see Window; for branches, the whole context
    nn::Hidden earlier = {};                     // of the context's tokens before the stem
    std::shared_ptr<const OnlineWeights> learned = {};
  };
  // Maps the cut length and the tokens of a context to the index of its stem.
  using Stems = std::map<std::pair<std::int64_t, Tokens>, std::size_t>;

  void score_text(const Passage& passage, TokenScores& to);
  void score_with_prefixes(const Tokens& context, const Tokens& continuation, TokenScores& to);
  void go_at(Pace* pace);
  void gather(
      const Passage& passage, std::vector<TokenScores>& to, std::vector<Work>& works, Stems& stems);
  nn::Hidden windows_before(const Tokens& context, std::int64_t from, std::int64_t start);
  Window past_of(const Tokens& context, std::int64_t start);
  torch::Tensor output_of(const Tokens& context);
  void learn_from(Work& work, const nn::Hidden& stem) const;
  void add(Work work);
  void flush(bool keep = false);
  std::vector<WindowToScore> windows_of(const Work& work, const EncodedTree& encoded) const;
  Tokens inputs(const Tokens& tokens, std::int64_t begin, std::int64_t end) const;

  // Another model that scores the passages beside the main model.
  struct Member;
  void score_ensemble(
      std::span<const Passage> passages, std::vector<std::vector<TokenScores>>& scores);

  nn::Model& model_;
  WindowPlan plan_;
  std::int64_t reach_;  // distance in tokens that memories look back
  TreeEncoder encoder_;
  WindowScores scores_;
  std::optional<Retriever> retriever_;
  bool whole_windows_;  // memories include the context
  CutTexts cut_;
  std::vector<TokenTree> trees_;
  std::vector<Work> works_;  // for trees_; their own trees are empty
  std::vector<std::unique_ptr<Member>> ensemble_;
  std::map<const TokenScores*, std::vector<torch::Tensor>> ensemble_f_;  // see WindowToScore
  std::map<Tokens, std::vector<torch::Tensor>> contexts_f_;  // of contexts, by each further model
  Pace* pace_ = nullptr;                                     // of the call of score()
};

}  // namespace infer
