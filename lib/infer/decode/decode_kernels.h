#pragma once
// Kernels for decoding a few rows at a time on the CPU, on raw float32 memory. The cost is
// dominated by reading the weights.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "infer/decode/tile_kernels.h"

namespace infer {

class BlockMatrix;

/// Computes out[i] = exp((x[i] - max) scale) and returns their sum. exp has an error of at most 2
/// ulp down to e^-87; smaller values become 1e-38.
double exp_weights(const float* x, std::int64_t n, float max, float scale, float* out);

/// Returns the largest of n > 0 values; NaN if one is NaN.
float max_of(const float* x, std::int64_t n);

/// Replaces x[0..n) by its softmax.
void softmax(float* x, std::int64_t n);

/// Subtracts the log-sum-exp of x[0..n) from each element and returns it.
float log_softmax(float* x, std::int64_t n);

/// Computes y = (x - mean) / sqrt(variance + epsilon) * weight + bias over n values; bias may be
/// null.
void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n,
    float epsilon, float* y);

/// Computes y = x / sqrt(mean of x^2 + epsilon) * weight + bias over n values; bias may be null.
void rms_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float epsilon,
    float* y);

/// Apply an activation of the feed-forward network in place.
void gelu(float* x, std::int64_t n);
void gelu_exact(float* x, std::int64_t n);
void relu(float* x, std::int64_t n);
void silu(float* x, std::int64_t n);

/// Computes x = cap tanh(x / cap) in place.
void soft_cap(float* x, std::int64_t n, float cap);

/// Rotates each pair (x[i], x[pairs + i]) by the angle with that cosine and sine, in place.
void turn_pairs(const float* cos, const float* sin, std::int64_t pairs, float* x);

void add(const float* x, std::int64_t n, float* y);    ///< y += x
void times(const float* x, std::int64_t n, float* y);  ///< y *= x

/// Computes out[i] = scale q . k[i] for n rows of k (n, width) with row stride `stride`.
void attention_scores(const float* q, const float* k, std::int64_t stride, std::int64_t n,
    std::int64_t width, float scale, float* out);
/// Computes out[r][i] = scale q[r] . k[i] for kScoreLanes rows of k, transposed (width,
/// kScoreLanes), and `queries` rows of q. The order of summation does not depend on `queries`.
inline constexpr std::int64_t kScoreLanes = 16;
void lane_scores(const float* const* q, std::int64_t queries, const float* k, std::int64_t width,
    float scale, float* const* out);
/// Computes out += weights[i] v[i] over n rows of v (n, width) with row stride `stride`.
void add_weighted(const float* weights, const float* v, std::int64_t stride, std::int64_t n,
    std::int64_t width, float* out);

/// file: the blocks of a GGUF file.
enum class Precision { float32, bfloat16, int8, file };
/// Parses the name. Throws Error{usage}.
Precision parse_precision(const std::string& name);

/// Returns whether the processor multiplies pairs of bfloat16 (AVX-512 BF16).
bool has_half_products();

/// A matrix (out, in) packed for products with a few rows. int8 has a scale for each output, the
/// largest magnitude of its weights / 127. Copies share the packed numbers. Const member functions
/// are thread safe.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// Packs a matrix of float or of bfloat16 (std::uint16_t). If it has this precision already, and
  /// `in` is a multiple of kLanes, references `weight`, which must outlive the object.
  template <class Weight>
  PackedMatrix(const Weight* weight, std::int64_t out, std::int64_t in, Precision precision);
  /// Multiplies with rows in their blocks.
  PackedMatrix(std::shared_ptr<const BlockMatrix> blocks, std::int64_t in);
  /// Creates a matrix of zeros, which set_rows() fills.
  PackedMatrix(std::int64_t out, std::int64_t in, Precision precision);
  /// Packs rows [first, first + rows) of float32 (rows, in). Only a matrix that the constructor
  /// above made has room for them.
  void set_rows(std::int64_t first, std::int64_t rows, const float* weight);

  static constexpr std::int64_t kLanes = 16, kPanel = 4;
  std::int64_t out() const { return out_; }
  std::int64_t in() const { return in_; }
  /// Returns the required length of a row of x, which is zero-padded.
  std::int64_t padded_in() const { return stride_; }
  std::int64_t panels() const { return (out_ + kPanel - 1) / kPanel; }
  /// Returns rows [first, first + rows) as a matrix that shares the numbers.
  PackedMatrix rows(std::int64_t first, std::int64_t rows) const;
  /// Unpacks one row to `in` floats.
  void row(std::int64_t index, float* out) const;

  /// Computes y[r][o] = x[r] . weight[o] for the outputs of panels [begin, end); x (rows,
  /// padded_in) has row stride ldx, y row stride ldy. The order of summation does not depend on
  /// `rows`.
  void multiply(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
      std::int64_t end, float* y, std::int64_t ldy) const;
  /// Does the same with x rounded to bfloat16; sums are float32. Weights in float32 or blocks and
  /// processors without has_half_products() take multiply(). `tiles`: see tile_kernels.h.
  void multiply_halves(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
      std::int64_t end, float* y, std::int64_t ldy, bool tiles = has_tile_products()) const;

 private:
  template <class Weight>
  void multiply(const Weight* weights, const float* x, std::int64_t rows, std::int64_t ldx,
      std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy) const;
  template <class Weight>
  void multiply_many(const Weight* weights, const float* x, std::int64_t rows, std::int64_t ldx,
      std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy) const;
  template <class Weight> struct Panel;
  void put(std::int64_t first, std::int64_t last, const float* sums, std::int64_t rows, float* y,
      std::int64_t ldy) const;
  template <class Weight> void convert(std::int64_t first, std::int64_t rows, const Weight* weight);

  std::int64_t out_ = 0, in_ = 0, stride_ = 0;
  Precision precision_ = Precision::float32;
  std::shared_ptr<std::byte[]> own_;  // memory of the pointers below; null: it is borrowed
  // Rows of `stride_` numbers. One of these three and blocks_ is not null.
  const float* floats_ = nullptr;
  const std::uint16_t* halves_ = nullptr;  // upper halves of floats
  const std::int8_t* bytes_ = nullptr;
  const float* scales_ = nullptr;  // int8: for each output
  std::shared_ptr<const BlockMatrix> blocks_;
  std::int64_t first_ = 0;  // row of blocks_
};

}  // namespace infer
