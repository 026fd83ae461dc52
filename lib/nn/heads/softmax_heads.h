#pragma once
// A softmax over the whole vocabulary: logits = f W^T, + b, or cap tanh(f W^T / cap) (Gemma 2).
// Adaptive softmax (Grave et al. 2017; Baevski & Auli 2019). The first level contains frequent
// tokens and one slot for each band of rarer tokens; the second level contains the tokens of a
// band.

#include "nn/base/architecture.h"
#include "nn/layers/embedding.h"

namespace nn {

class PlainHead : public Head {
 public:
  /// Owns a matrix (vocabulary, d_model) named "weight" and, with `bias`, a vector (vocabulary)
  /// named "bias". `cap` 0: scores are not bounded; else without bias.
  PlainHead(std::int64_t vocabulary, std::int64_t d_model, bool bias = false, double cap = 0);
  /// Shares the single table of a plain embedding.
  explicit PlainHead(const std::shared_ptr<Embedding>& tied, bool bias = false, double cap = 0);

  std::int64_t vocabulary() const override { return weight_.size(0); }
  bool linear() const override { return !bias_.defined() && cap_ == 0; }
  std::vector<torch::Tensor> weights() override;
  std::unique_ptr<HeadBlock> block(
      const torch::Tensor& f, const Targets& targets, bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  std::int64_t bytes_per_row() const override;

 private:
  void add_bias(bool bias);
  torch::Tensor weight_, bias_;  // bias_: undefined without a bias
  double cap_;
};

/// Computes log p(w) = log p(slot of w's band) + log p(w in its band). First level: f' E_0^T for
/// the tokens of band 0, then f' C^T for the slots of bands 1, 2, ...; f' = f P_0 if the width of
/// band 0 is not d_model, else f. log_z is the log-sum-exp of the first level. Band i is a separate
/// softmax over dropout(f P_i) E_i^T. Tables E_i (size of band, width) are shared with a tied
/// embedding; projections P_i (d_model, width) are shared too if `tied_projections`. The slots' C
/// (bands - 1, width of band 0) always belong to the head. `bias` adds a bias to the score of each
/// token and each slot.
class AdaptiveHead : public Head {
 public:
  /// `tied` null: the head owns all weights.
  AdaptiveHead(Bands bands, const std::shared_ptr<Embedding>& tied, bool tied_projections,
      double adaptive_softmax_dropout, bool bias = false);

  std::int64_t vocabulary() const override { return bands_.vocabulary; }
  /// Returns the tables of all bands, the slots, the projections of bands 1, 2, ..., then that of
  /// band 0 if present; with biases, also those of tokens (V) and of slots.
  std::vector<torch::Tensor> weights() override;
  std::unique_ptr<HeadBlock> block(
      const torch::Tensor& f, const Targets& targets, bool gradient) override;
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override;
  /// Assumes that a quarter of the rows fall into the largest band.
  std::int64_t bytes_per_row() const override;

 private:
  void add_projection(std::int64_t band, const Embedding* tied);

  Bands bands_;
  std::vector<torch::Tensor> tables_, projections_;  // in the order of weights()
  torch::Tensor slots_;
  torch::Tensor bias_, slot_bias_;  // undefined without `bias`
  double tail_dropout_;
};

}  // namespace nn
