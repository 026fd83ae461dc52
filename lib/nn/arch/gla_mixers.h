#pragma once
// Recurrences whose state is a matrix a head, as a gla's layers have them: what a token writes into
// it and what fades. Keys are half as wide as values.

#include <memory>
#include <string>

#include "nn/base/model_options.h"
#include "nn/base/state.h"
#include "nn/layers/init.h"
#include "nn/layers/layers.h"
#include "nn/layers/positions.h"
#include "nn/layers/short_convolution.h"

namespace nn {

inline constexpr std::int64_t kGlaGateRank = 16;

/// One call, as all layers see it: rows of T tokens, the real ones first.
struct GlaCall {
  State* state = nullptr;  ///< null: nothing is carried
  torch::Tensor count;     ///< (B) int64: real tokens; undefined: T
  torch::Tensor real;      ///< (B, T, 1), follows from it: 0 at padding; undefined: none is
  /// What State holds under `name`, or undefined.
  torch::Tensor carried(const std::string& name) const;
  void carry(const std::string& name, const torch::Tensor& value) const;
};

class GlaMixer : public torch::nn::Module {
 public:
  /// x (B, T, d) -> the same shape. State under NAME.state (B, heads, d_key, d_value) and what else
  /// a mixer carries. Padding changes no state.
  virtual torch::Tensor forward(const torch::Tensor& x, const GlaCall& call,
                                const std::string& name) = 0;

 protected:
  GlaMixer(const ShapeOptions& shape) : heads_(shape.heads), d_(shape.d_model) {}
  /// (B, T, width) -> (B, T, heads, width / heads).
  torch::Tensor by_head(const torch::Tensor& x) const;
  torch::Tensor first_state(const torch::Tensor& x, const GlaCall& call,
                            const std::string& name) const;
  std::shared_ptr<Linear> add_matrix(const char* name, std::int64_t in, std::int64_t out,
                                     bool bias);

  std::int64_t heads_, d_;
};

/// Throws Error{bad_config} where options do not go together.
std::shared_ptr<GlaMixer> make_gla_mixer(const ModelOptions& options);

/// Gated linear attention (Yang et al. 2023), and what has its form:
///   q, k, v, r = c_in(x); o = gla_scan(q / sqrt(d_key), k, decay, v);
///   c_proj(swish(r) norm(o)), the norm of each head alone. No positions.
/// decay, one for each channel of the keys:
///   gated   sigmoid(gate_up(gate_down(x)))^(1/16)
///   fixed   1 - 2^(-5 - h) for head h, and q and k turn with their place as RetNet's (Sun et al.
///           2023; angles 10000^(-2i / d_key), no lengths). The state is that of a token at place
///           -1: behind a call it is turned back by the call's tokens, so that no place is carried.
///   none    1: linear attention without a sum below the line
class GatedLinearAttention : public GlaMixer {
 public:
  GatedLinearAttention(const ShapeOptions& shape, const std::string& decay, double norm_epsilon);
  torch::Tensor forward(const torch::Tensor& x, const GlaCall& call,
                        const std::string& name) override;

 private:
  torch::Tensor log_decay(const torch::Tensor& x) const;  ///< (B, T, d / 2)

  std::string decay_;
  std::shared_ptr<Linear> c_in_, gate_down_, gate_up_, c_proj_;
  std::shared_ptr<LayerNorm> norm_;
};

/// The gated delta rule (Yang et al. 2024, "Gated Delta Networks"; with decay none that of
/// "Parallelizing Linear Transformers with the Delta Rule"):
///   q, k, v, r = c_in(x); q, k, v = swish(convolution(q, k, v)); |q| = |k| = 1 in each head;
///   beta, a = gates(x), a number a head: beta = sigmoid(.), log decay = -exp(a_log) softplus(a +
///   a_bias); o = delta_scan(q, k, v, beta, log decay); c_proj(swish(r) norm(o)), RMS norms.
/// First values as published: exp(a_log) from 1 to 16, softplus(a_bias) from 0.001 to 0.1. State
/// also: NAME.past, what the convolution has yet to see again.
class GatedDelta : public GlaMixer, public OwnFirstValues {
 public:
  static constexpr double kLengthEpsilon = 1e-6;  ///< added to |q|^2 and |k|^2

  GatedDelta(const ShapeOptions& shape, const GlaOptions& options, double norm_epsilon);
  torch::Tensor forward(const torch::Tensor& x, const GlaCall& call,
                        const std::string& name) override;
  void first_values() override;

 private:
  std::shared_ptr<Linear> c_in_, gates_, c_proj_;
  std::shared_ptr<ShortConvolution> convolution_;  // null: none
  torch::Tensor a_log_, a_bias_;                   // (heads); undefined: no decay
  std::shared_ptr<LayerNorm> norm_;
};

}  // namespace nn
