#pragma once
// Softmax attention of many queries to shared slots, for one head on the CPU. It computes tiles of
// queries x slots that fit the second-level cache.

#include <cstdint>
#include <vector>

namespace nn {

/// q, o and their gradients are (queries, width) with row stride `stride`; keys and values (slots,
/// width) are contiguous; all are float32. No (queries, slots) matrix is stored: the backward pass
/// recomputes the weights. Not thread safe: use one object per thread.
class SlotAttention {
 public:
  /// Returns whether heads of this width consist of whole vectors.
  static bool fits(std::int64_t width);
  SlotAttention(std::int64_t slots, std::int64_t width, std::int64_t stride);
  /// o = softmax(q keys^T) values. log_sums (queries) is the log-sum-exp of each row, for the
  /// backward pass.
  void forward(std::int64_t queries, const float* q, const float* keys, const float* values,
      float* o, float* log_sums);
  /// Overwrites dq, d_keys and d_values.
  void backward(std::int64_t queries, const float* q, const float* keys, const float* values,
      const float* o, const float* log_sums, const float* d_o, float* dq, float* d_keys,
      float* d_values);

 private:
  std::int64_t slots_, width_, stride_, tile_;  // tile_: slots per tile
  std::vector<float> scores_, d_scores_;        // (rows of a tile, tile_)
  std::vector<float> dots_;                     // (queries): o . d_o
  std::vector<float> turned_, turned_values_;   // (width, tile_): transposed keys and values
};

}  // namespace nn
