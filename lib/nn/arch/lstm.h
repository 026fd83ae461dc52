#pragma once
// Long short-term memory (Hochreiter & Schmidhuber 1997), as in torch.nn.LSTM.

#include "nn/arch/state_memory.h"

namespace nn {

/// An Lstm consists of an embedding, `layers` LSTM layers of width d_recurrent with dropout between
/// them, and a projection to d_model if the widths differ. The memory key is the output. Weights
/// have torch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0. State: "h" and "c", (B,
/// layers, d_recurrent).
///
/// With --state-memory, layer n has a StateMemory, "memory_ln", of its cells. They are linear in
/// what the input gates let in, given all gates, so its recurrence is
///   c_t = f_t c_{t-1} + i_t tanh(g_t),   and the layer's output is   o_t tanh(read c)
/// where the gates come from the LSTM without memory. The weights of states are common to all
/// cells. State: also "memory_l0.kept", ...
class Lstm : public CarryingArchitecture {
 public:
  Lstm(const ModelOptions& options, std::int64_t vocabulary);

  Hidden forward(const Batch& batch, State* state) override;
  Hidden decode(const torch::Tensor& ids, KvRing& ring, State& kept) override;
  /// See nn::carried_state().
  static CarriedState carried_state(const ModelOptions& options);

 private:
  /// `real` (B, T) bool, on the device of the ids, marks the tokens that change cells; undefined:
  /// all. count (B), with memories: the rows' real tokens, which come first.
  Hidden advance(const torch::Tensor& ids, const torch::Tensor& real, State* state,
      const torch::Tensor& count = {});
  torch::Tensor run(const torch::Tensor& x, torch::Tensor& h, torch::Tensor& c);
  torch::Tensor run_masked(
      const torch::Tensor& x, const torch::Tensor& real, torch::Tensor& h, torch::Tensor& c);
  torch::Tensor run_with_memories(
      torch::Tensor x, MixerCall call, torch::Tensor& h, torch::Tensor& c);

  std::int64_t width_;
  std::vector<torch::Tensor> cells_;    // four for each layer, in the order of torch::lstm
  std::shared_ptr<Linear> projection_;  // null if the widths are equal
  std::vector<std::shared_ptr<StateMemory>> memories_;  // of the layers; empty: none
};

}  // namespace nn
