#pragma once
// Batches of tokens (or vectors) with their positions in the data stream.

#include "nn/base/torch.h"
namespace nn {

/// A TokenPositions has the position of each token in the data stream: three int64 CPU tensors of
/// equal shape, (B, T) or (N). Tokens of a run are consecutive in the text; a run consists of
/// segments; `position` counts tokens from the start of the data. Run -1 marks padding. Ids are
/// global: no two batches and no two processes use equal ids for different positions.
struct TokenPositions {
  torch::Tensor run, segment, position;

  static TokenPositions empty();
  TokenPositions flatten() const;                                    ///< (N)
  TokenPositions slice(std::int64_t begin, std::int64_t end) const;  ///< along the first dimension
  static TokenPositions concatenate(const std::vector<TokenPositions>& places);
  std::int64_t size() const { return run.numel(); }
};

/// A Batch has B rows of T consecutive tokens each.
struct Batch {
  torch::Tensor inputs;  ///< (B, T) int64 ids, or (B, T, width) float32 vectors
  /// (B, T) int64: the token after each input; or (B, T, width) float32.
  torch::Tensor targets;
  torch::Tensor weight;  ///< (B, T) float32: 1 scored, 0 context only
  TokenPositions place;  ///< (B, T), positions of the inputs
  torch::Tensor fresh;   ///< (B) bool on the CPU: rows whose State is reset
  torch::Tensor source;  ///< (B, S) int64 or undefined: input of an encoder; -1 is padding
  /// CPU copies of the device tensors, which save a synchronisation. Undefined if the tensors are
  /// on the CPU or no copy exists.
  torch::Tensor host_targets = {}, host_weight = {}, host_source = {};

  /// Returns a batch of padding: zeros, with run -1 and without fresh rows or sources.
  static Batch padding(std::int64_t rows, std::int64_t steps);
  std::int64_t rows() const { return inputs.size(0); }
  std::int64_t steps() const { return inputs.size(1); }
  /// Copies the tensors of the computation to `device` without synchronisation; place and fresh
  /// remain on the CPU.
  Batch to(torch::Device device) const;
  /// Returns true if no token is padding. Reads the CPU only, without device synchronisation.
  bool dense() const;
};

}  // namespace nn
