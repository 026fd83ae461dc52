#pragma once
// What flows from the order of batches to the models: tokens (or vectors) with their place in the
// stream.

#include "nn/base/torch.h"
namespace nn {

/// Where tokens stand in the stream. Three int64 CPU tensors of one shape, (B, T) or (N).
/// Tokens of one run follow each other in the text; a run is cut in segments; position counts
/// tokens from the start of the data. Run -1 marks padding. Ids are global: two batches, or two
/// processes, never give one id to two places.
struct Place {
  torch::Tensor run, segment, position;

  static Place empty();
  Place flatten() const;                                    ///< (N)
  Place slice(std::int64_t begin, std::int64_t end) const;  ///< along the first dimension
  static Place concatenate(const std::vector<Place>& places);
  std::int64_t size() const { return run.numel(); }
};

/// B rows of T consecutive tokens each.
struct Batch {
  torch::Tensor inputs;  ///< (B, T) int64 ids, or (B, T, width) float32 vectors
  /// (B, T) int64: the token that follows each input; or (B, T, width) float32.
  torch::Tensor targets;
  torch::Tensor weight;  ///< (B, T) float32: 1 scored, 0 fed only
  Place place;           ///< (B, T), of the inputs
  torch::Tensor fresh;   ///< (B) bool on the CPU: rows whose State starts afresh
  torch::Tensor source;  ///< (B, S) int64 or undefined: what an encoder reads; padding is -1
  /// On the CPU what a device has of them, so that nobody needs to wait for it; undefined where
  /// they are there already, or nothing is known.
  torch::Tensor host_targets = {}, host_weight = {}, host_source = {};

  std::int64_t rows() const { return inputs.size(0); }
  std::int64_t steps() const { return inputs.size(1); }
  /// Tensors the models compute with go to `device`, without waiting for it; place and fresh stay
  /// on the CPU.
  Batch to(torch::Device device) const;
  /// True if no token is padding (known on the CPU, no device sync).
  bool dense() const;
};

}  // namespace nn
