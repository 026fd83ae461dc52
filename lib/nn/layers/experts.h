#pragma once
// Mixture of experts: a router chooses a few feed-forward networks for each token (Shazeer et al.
// 2017, "Outrageously Large Neural Networks"). There is no noise, as in Mixtral (Jiang et al.
// 2024), OLMoE (Muennighoff et al. 2024) and Qwen 3.
//
//   p = softmax(W_router x), over all experts
//   C = the k experts with the largest p
//   w_e = p_e / sum over C of p, which is the softmax over C alone;  not normalised: w_e = p_e
//   y = sum over e of C of w_e expert_e(x)
//
// Each expert is a FeedForward. The gradient reaches the router through w, and the chosen experts;
// the gradients of the others are zero. There is no load-balancing loss.

#include <cstdint>
#include <memory>

#include "nn/base/torch.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/init.h"
#include "nn/layers/layers.h"

namespace nn {

struct ExpertShape {
  std::int64_t d;          ///< of the vectors read and given
  std::int64_t width;      ///< inside an expert
  std::int64_t count;      ///< experts
  std::int64_t per_token;  ///< k, at most count
  bool normalised;
  bool bias;  ///< of the experts' matrices; the router has none
};

/// Parameters: router.weight (count, d), and the stacked matrices of all experts, the first expert
/// first: c_fc.weight (count * wide, d), c_proj.weight (count * d, width), with biases of equal
/// lengths.
class Experts : public TokenNetwork, public OwnFirstValues {
 public:
  Experts(const ExpertShape& shape, const Inner& inner);
  torch::Tensor forward(const torch::Tensor& x) const override;
  /// Draws matrices from normal(0, columns^-0.5).
  void first_values() override;

 private:
  ExpertShape shape_;
  Inner inner_;
  std::shared_ptr<Linear> router_, c_fc_, c_proj_;
};

}  // namespace nn
