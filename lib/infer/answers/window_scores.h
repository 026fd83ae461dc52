#pragma once
// Log-probabilities of the tokens of windows, with all that is remembered, and whether each was the
// best.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "infer/answers/passage.h"
#include "infer/memory/stream_memory.h"
#include "infer/sources/memory_plan.h"
#include "infer/windows/window_plan.h"

namespace infer {

/// A window, whose tokens from `first_scored` on are scored.
struct WindowToScore {
  Window window;
  bool fresh = true;     ///< what was remembered before is forgotten
  Window past = {};      ///< f is not defined: none; else what is remembered first
  TokenScores* to = {};  ///< scores are put behind those it has
  /// Of each model that reads beside f (n, d) of all tokens of `to`.
  const std::vector<torch::Tensor>* beside = {};
};

/// Not thread safe.
class WindowScores {
 public:
  /// `words`: the head may have more, which are no text. All must outlive this.
  WindowScores(nn::Model& model, nn::Head& head, const WindowPlan& windows,
               const MemoryPlan& memory, std::int64_t words, TokenWants wants);

  /// Windows of one stream in their order. Throws Error{bad_data} for what is no number.
  void score(const std::vector<WindowToScore>& windows);
  /// Whether what stands before a window matters.
  bool remembers() const { return memory_.remembers(); }

 private:
  void score_alone(const std::vector<WindowToScore>& windows);
  torch::Tensor confidence(const std::vector<WindowToScore>& windows);
  void score_with_memory(const WindowToScore& of, const StreamMemory::Asked& asked,
                         std::int64_t offset);
  void add(const torch::Tensor& log_probs, const torch::Tensor& targets, TokenScores& to) const;
  void add_details(const torch::Tensor& log_probs, const torch::Tensor& targets,
                   const torch::Tensor& shares, TokenScores& to) const;

  nn::Head& head_;
  MemoryPlan plan_;
  std::vector<std::shared_ptr<const BesideModel>> beside_;
  StreamMemory memory_;
  std::int64_t words_, head_words_;
  TokenWants wants_;
};

}  // namespace infer
