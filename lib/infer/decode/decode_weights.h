#pragma once
// Finds an architecture's weights by name and packs them for decoding.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "infer/decode/decode_kernels.h"
#include "infer/decode/team_share.h"
#include "nn/base/torch.h"

namespace infer {

/// An affine map y = matrix x + bias.
struct Affine {
  PackedMatrix matrix;
  const float* bias = nullptr;  ///< null: none
  bool halves = false;          ///< rounds x: PackedMatrix::multiply_halves()

  /// Outputs [first, last) that a thread computes for `rows` rows of x, which has row stride ldx
  /// and is zero-padded to the matrix's padded_in().
  struct Range {
    std::int64_t first, last;
  };
  Range range(TeamShare share) const;
  void multiply(const float* x, std::int64_t rows, std::int64_t ldx, TeamShare share, float* y,
                std::int64_t ldy) const;
};

/// Layer norm or RMS norm.
struct LayerNormed {
  const float *weight = nullptr, *bias = nullptr;  ///< bias null: none
  std::int64_t width = 0;
  float epsilon = 0;
  bool rms = false;
  void operator()(const float* x, float* y) const {
    (rms ? rms_norm : layer_norm)(x, weight, bias, width, epsilon, y);
  }
};

/// Weights of a module. Returned objects point to the module's weights or into this object; both
/// must outlive them. Member functions throw Error{bug} for a weight that is missing or has another
/// shape.
class DecodeWeights {
 public:
  /// Weights are float32, contiguous and on the CPU.
  DecodeWeights(const torch::nn::Module& module, Precision precision);

  torch::Tensor tensor(const std::string& name, torch::IntArrayRef sizes) const;
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  const float* vector(const std::string& name, std::int64_t size) const;
  /// Returns rows [first, first + rows) of NAME.weight (out, in), and of NAME.bias if present.
  Affine affine(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t first,
                std::int64_t rows) const;
  Affine affine(const std::string& name, std::int64_t out, std::int64_t in) const {
    return affine(name, out, in, 0, out);
  }
  LayerNormed norm(const std::string& name, std::int64_t width, double epsilon) const;
  /// Packs a float32 matrix (out, in) and keeps a copy.
  PackedMatrix packed(const torch::Tensor& matrix);
  /// Stores a computed vector as float32 and returns its data.
  const float* kept(const torch::Tensor& values);

 private:
  Precision precision_;
  std::map<std::string, torch::Tensor> tensors_;
  std::vector<torch::Tensor> kept_;
};

}  // namespace infer
