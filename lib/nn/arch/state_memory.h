#pragma once
// Memories of past states (--state-memory) of a layer whose recurrence has a matrix S for each head
// and is linear in its values. Where the layer would read one state, it reads several.
//
// segments: memory caching (Behrouz et al. 2026, arXiv 2602.24281), the form with gated residuals.
//   The state at the end of each segment of `every` tokens is kept, and the recurrence goes on from
//   it. With S the present state, S^(i) the kept ones, and m the mean of W_m x over the tokens of a
//   segment (of the present one: so far),
//     o_t = (g_t S_t + sum_i g_t^(i) S^(i))^T q_t,   g_t = softmax over segments of W_u x_t . m
//   At most `segments` states are kept: the newest. The oldest is dropped.
// fenwick: log-linear attention (Guo et al. 2025, arXiv 2506.04761), on a Fenwick tree of the text.
//   S_t is a sum of one part for each earlier token; all parts decay alike. Token s belongs to
//   level 0 if s = t, else to level l = 1 + the highest bit in which s and t differ. Therefore each
//   level is a block of 2^(l-1) tokens. With S_t^(l) the sum of the parts of level l,
//     o_t = sum_l w_t^(l) (S_t^(l))^T q_t,   w_t = softplus(W x_t + b) / ln 2
//   T tokens have at most ceil(log2 T) + 1 levels. There are `levels`; the last one takes all older
//   tokens. A text carries a state for each level but 0, and the present one, their sum.
//
// Compared with the authors' program of log-linear attention (recurrent.py, base.py): levels, order
// of merging and decay. There, w is softplus(L_l (W x)_l), with numbers L in place of the bias.
// Memory caching was read in summaries only: that each head has weights of its own, that they are
// scaled as attention's, the projection W_m, and the LSTM's form were not checked against the
// paper. Neither paper has an LSTM; see lstm.h.

#include "nn/arch/mixer.h"
#include "nn/ops/gla_scan.h"

namespace nn {

/// A recurrence over T steps as a function of the values and of the first state, linear in both.
struct LinearRecurrence {
  std::vector<torch::Tensor> steps;  ///< inputs (B, T, ...); first q (B, T, heads, d_key)
  torch::Tensor v;                   ///< (B, T, heads, d_value)
  /// Steps that are all 0 have no effect.
  GlaOutput (*scan)(
      const std::vector<torch::Tensor>& steps, const torch::Tensor& v, const torch::Tensor& start);
};

/// The scan of gated linear attention; steps: q, k, log_decay.
inline GlaOutput scan_gla(
    const std::vector<torch::Tensor>& steps, const torch::Tensor& v, const torch::Tensor& start) {
  return gla_scan({steps[0], steps[1], steps[2], v, start});
}

/// State: NAME.kept (B, kept states, heads, d_key, d_value); NAME.seen, the row's tokens, (B, 1)
/// int64 on the CPU. segments: also NAME.means (B, segments, width), the newest last, and NAME.sum
/// (B, width), of the present segment.
class StateMemory : public torch::nn::Module {
 public:
  /// width: of x. heads: that have weights of their own; 1: all heads of the recurrence share them.
  StateMemory(const StateMemoryOptions& options, std::int64_t width, std::int64_t heads);

  /// Computes the recurrence for x (B, T, width) and reads the states: (B, T, heads, d_value), and
  /// the state after the last step. The caller carries that to the next call as `start`.
  GlaOutput read(const torch::Tensor& x, const LinearRecurrence& recurrence,
      const torch::Tensor& start, const MixerCall& call, const std::string& name) const;
  /// Returns the numbers that a row carries besides the present state of `numbers` numbers.
  static std::int64_t carried(
      const StateMemoryOptions& options, std::int64_t width, std::int64_t numbers);

 private:
  struct Part;
  torch::Tensor read_segment(Part& part) const;
  torch::Tensor read_tree(Part& part) const;

  StateMemoryOptions options_;
  std::int64_t heads_;
  std::shared_ptr<Linear> weights_;  // fenwick: W, b; segments: W_u, then W_m; else null
};

}  // namespace nn
