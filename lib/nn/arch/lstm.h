#pragma once
// Long short-term memory (Hochreiter & Schmidhuber 1997), as in torch.nn.LSTM.

#include "nn/layers/kv_cache.h"
#include "nn/layers/layers.h"

namespace nn {

/// An Lstm consists of an embedding, `layers` LSTM layers of width d_recurrent with dropout between
/// them, and a projection to d_model if the widths differ. The memory key is the output. Weights
/// have torch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0. State: "h" and "c", (B,
/// layers, d_recurrent).
class Lstm : public CarryingArchitecture {
 public:
  Lstm(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);

 private:
  /// `real` (B, T) bool, on the device of the ids, marks the tokens that change cells; undefined:
  /// all.
  Hidden advance(const torch::Tensor& ids, const torch::Tensor& real, State* state);
  torch::Tensor run(const torch::Tensor& x, torch::Tensor& h, torch::Tensor& c);
  torch::Tensor run_masked(
      const torch::Tensor& x, const torch::Tensor& real, torch::Tensor& h, torch::Tensor& c);

  std::int64_t width_;
  std::vector<torch::Tensor> cells_;    // four for each layer, in the order of torch::lstm
  std::shared_ptr<Linear> projection_;  // null if the widths are equal
};

}  // namespace nn
