#pragma once
// Softmax attention of many queries to slots that all of them share, one head on the CPU, in tiles
// of queries x slots that stay in the second-level cache.

#include <cstdint>
#include <vector>

namespace nn {

/// q, o and their gradients are (queries, width) with row stride `stride`; keys and values (slots,
/// width) are dense; float32. No (queries, slots) matrix: the backward pass computes the weights
/// again. Not thread safe: one a thread.
class SlotAttention {
 public:
  /// Whether heads of this width can be read a vector at a time.
  static bool fits(std::int64_t width);
  SlotAttention(std::int64_t slots, std::int64_t width, std::int64_t stride);
  /// o = softmax(q keys^T) values; log_sums (queries): log-sum-exp of each row, for backward.
  void forward(std::int64_t queries, const float* q, const float* keys, const float* values,
               float* o, float* log_sums);
  /// Overwrites dq, d_keys and d_values.
  void backward(std::int64_t queries, const float* q, const float* keys, const float* values,
                const float* o, const float* log_sums, const float* d_o, float* dq, float* d_keys,
                float* d_values);

 private:
  std::int64_t slots_, width_, stride_, tile_;  // tile_: slots of a tile
  std::vector<float> scores_, d_scores_;        // (rows of a tile, tile_)
  std::vector<float> dots_;                     // (queries): o . d_o
  std::vector<float> turned_, turned_values_;   // (width, tile_): keys and values of a tile
};

}  // namespace nn
