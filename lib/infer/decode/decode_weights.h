#pragma once
// The weights of an architecture, found by their names in its file and laid out for decoding.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "infer/decode/decode_kernels.h"
#include "infer/decode/team_share.h"
#include "nn/base/torch.h"

namespace infer {

/// y = matrix x + bias.
struct Affine {
  PackedMatrix matrix;
  const float* bias = nullptr;  ///< null: none

  /// What a thread makes of `rows` rows of x: the outputs [first, last). x has row stride ldx and
  /// zeros behind what the matrix reads.
  struct Range {
    std::int64_t first, last;
  };
  Range range(TeamShare share) const;
  void multiply(const float* x, std::int64_t rows, std::int64_t ldx, TeamShare share, float* y,
                std::int64_t ldy) const;
};

/// Layer norm, or RMS norm.
struct LayerNormed {
  const float *weight = nullptr, *bias = nullptr;  ///< bias null: none
  std::int64_t width = 0;
  float epsilon = 0;
  bool rms = false;
  void operator()(const float* x, float* y) const {
    (rms ? rms_norm : layer_norm)(x, weight, bias, width, epsilon, y);
  }
};

/// What these give points into the module's weights or into this object; both must outlive it.
/// Throw Error{bug} where a weight is missing or of other sizes.
class DecodeWeights {
 public:
  /// Weights are float32, contiguous and on the CPU.
  DecodeWeights(const torch::nn::Module& module, Precision precision);

  torch::Tensor tensor(const std::string& name, torch::IntArrayRef sizes) const;
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }
  const float* vector(const std::string& name, std::int64_t size) const;
  /// NAME.weight (out, in), of which the rows [first, first + rows), and NAME.bias if there is one.
  Affine affine(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t first,
                std::int64_t rows) const;
  Affine affine(const std::string& name, std::int64_t out, std::int64_t in) const {
    return affine(name, out, in, 0, out);
  }
  LayerNormed norm(const std::string& name, std::int64_t width, double epsilon) const;
  /// (out, in), float32, of which a copy is kept.
  PackedMatrix packed(const torch::Tensor& matrix);
  /// A vector that was computed, kept as float32.
  const float* kept(const torch::Tensor& values);

 private:
  Precision precision_;
  std::map<std::string, torch::Tensor> tensors_;
  std::vector<torch::Tensor> kept_;
};

}  // namespace infer
