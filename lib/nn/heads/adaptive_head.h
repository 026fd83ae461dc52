#pragma once
// Adaptive softmax (Grave et al. 2017; Baevski & Auli 2019): frequent words and one slot for each
// band of rarer words at the first level, the words of a band at the second.

#include <memory>
#include <vector>

#include "nn/base/head.h"
#include "nn/layers/embedding.h"

namespace nn {

/// First level, with f' = f P_0 where band 0 is not d_model wide, else f: f' E_0^T for the words of
/// band 0, then f' C^T for the slots of bands 1, 2, ...; log_z is its log-sum-exp. Band i:
/// dropout(f P_i) E_i^T, a softmax of its own. log p(w) = log p(slot of w's band) + log p(w in its
/// band). Tables E_i (band's size, width) are the embedding's where tied, projections P_i (d_model,
/// width) too if `tied_projections`; the slots' C (bands - 1, width of band 0) are always the
/// head's own. With `bias` each word's and each slot's score has one added.
class AdaptiveHead : public Head {
 public:
  /// `tied` null: all weights are the head's own.
  AdaptiveHead(Bands bands, const std::shared_ptr<Embedding>& tied, bool tied_projections,
               double tail_dropout, bool bias = false);

  std::int64_t vocabulary() const override { return bands_.vocabulary; }
  /// Tables of all bands, the slots, projections of bands 1, 2, ..., then band 0's if it has one;
  /// with biases those of words (V) and of slots.
  std::vector<torch::Tensor> weights() override;
  std::unique_ptr<HeadBlock> block(const torch::Tensor& f, const Targets& targets,
                                   bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  /// Reckons with a quarter of the rows in the largest band.
  std::int64_t bytes_per_row() const override;

 private:
  void add_projection(std::int64_t band, const Embedding* tied);

  Bands bands_;
  std::vector<torch::Tensor> tables_, projections_;  // as weights() has them
  torch::Tensor slots_;
  torch::Tensor bias_, slot_bias_;  // undefined where there are none
  double tail_dropout_;
};

}  // namespace nn
