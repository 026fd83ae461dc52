#pragma once
// Scores the tokens of windows with all memories, and tells whether each was the most probable.

#include "infer/answers/answer.h"
#include "infer/decode/pace.h"

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
  const std::vector<torch::Tensor>* beside = {};
};

/// Scores windows. Not thread safe.
class WindowScores {
 public:
  /// `words`: number of tokens of the vocabulary; the head's further rows are padding. All
  /// references must outlive the object.
  WindowScores(nn::Model& model, nn::Head& head, const WindowPlan& windows,
      const MemoryPlan& memory, std::int64_t words, TokenWants wants);

  /// Scores windows of one stream in order. Throws Error{bad_data} if a score is NaN.
  void score(const std::vector<WindowToScore>& windows);
  /// Divides score() into pieces; null: whole windows. It must outlive the calls.
  void go_at(Pace* pace) { pace_ = pace; }
  /// Returns whether tokens before a window affect its scores.
  bool remembers() const { return memory_.remembers(); }
  bool learns() const { return plan_.online; }
  /// Returns the weights after a context; see WeightsLearner. `beside`: f of each further model.
  std::shared_ptr<const OnlineWeights> learn(const std::vector<std::int64_t>& context,
      const nn::Hidden& hidden, const std::vector<torch::Tensor>& beside) const;

 private:
  std::int64_t piece(std::int64_t block) const;
  void end_piece(std::int64_t rows) const;
  void score_alone(const std::vector<WindowToScore>& windows);
  torch::Tensor confidence(const std::vector<WindowToScore>& windows);
  void score_with_memory(
      const WindowToScore& of, const StreamMemory::Asked* asked, std::int64_t offset);
  void add(const torch::Tensor& log_probs, const torch::Tensor& targets, TokenScores& to) const;
  void add_details(const torch::Tensor& log_probs, const torch::Tensor& targets,
      const torch::Tensor& shares, TokenScores& to) const;

  nn::Model& model_;
  nn::Head& head_;
  std::int64_t window_;
  MemoryPlan plan_;
  std::vector<std::shared_ptr<const BesideModel>> beside_;
  StreamMemory memory_;
  std::int64_t words_, head_words_;
  TokenWants wants_;
  Pace* pace_ = nullptr;
};

}  // namespace infer
