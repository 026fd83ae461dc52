#pragma once
// The diagonal state space of S4D and H3: for each channel p = n / 2 complex numbers h with their
// conjugates, discretised by zero-order hold,
//
//   h_t = exp(dt A) h_{t-1} + u_t
//   y_t = 2 Re(sum over the p of C (exp(dt A) - 1) / A h_t) + skip u_t
//
// with A = -exp(a_log) + i a_imaginary, dt = exp(dt_log), and C given by its two parts.

#include "nn/arch/mixer.h"

namespace nn {

/// Parameters of d channels with n numbers each: p pairs of a real and an imaginary part.
class DiagonalStateSpace : public torch::nn::Module, public OwnFirstValues {
 public:
  /// Throws Error{bad_config} if n is odd.
  DiagonalStateSpace(std::int64_t d, std::int64_t n);
  /// Maps u (B, T, d) to the same shape, in at least float32 (long_convolution.h). The State holds
  /// h as `name` (B, d, n). No loop over T.
  torch::Tensor forward(const torch::Tensor& u, const MixerCall& call, const std::string& name);
  /// S4D-Lin: A = -1/2 + i pi k, dt log-uniform from 0.001 to 0.1, C and skip normal.
  void first_values() override;

 private:
  std::int64_t d_, pairs_;
  torch::Tensor dt_log_, a_log_, a_imaginary_, c_, skip_;  // (d), (d p), (d p), (d n), (d)
};

}  // namespace nn
