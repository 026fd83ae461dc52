#pragma once
// Feed-forward networks of which a router chooses a few for each token: the sparse mixture of
// experts of Shazeer et al. 2017, "Outrageously Large Neural Networks", without noise, as Mixtral
// (Jiang et al. 2024), OLMoE (Muennighoff et al. 2024) and Qwen 3 have it.
//
//   p = softmax(W_router x), over all experts
//   C = the k experts with the largest p
//   w_e = p_e / sum over C of p, which is the softmax over C alone;  not normalised: w_e = p_e
//   y = sum over e of C of w_e expert_e(x)
//
// Each expert is a FeedForward. The gradient reaches the router through w, and the experts that
// were chosen; those of others are zeros. Nothing is added to the loss that spreads the tokens over
// the experts.

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

/// Parameters: router.weight (count, d); and all experts' one below the other, c_fc.weight
/// (count * wide, d), its first rows those of the first expert, c_proj.weight (count * d, width),
/// with biases of as many numbers.
class Experts : public TokenNetwork, public OwnFirstValues {
 public:
  Experts(const ExpertShape& shape, const Inner& inner);
  torch::Tensor forward(const torch::Tensor& x) const override;
  /// Matrices normal(0, columns^-0.5).
  void first_values() override;

 private:
  ExpertShape shape_;
  Inner inner_;
  std::shared_ptr<Linear> router_, c_fc_, c_proj_;
};

}  // namespace nn
