#pragma once
// Initialisation of parameters.

#include <cstdint>
#include <string>

#include "nn/base/torch.h"

namespace nn {

/// Fills all parameters of `module` from torch's generator, in the order of registration.
///
/// "gpt2": matrices and tables normal(0, .02), the projections back to the residual stream (c_proj)
/// normal(0, .02 / sqrt(2 layers)).
///
/// "fairseq": tables normal(0, width^-0.5), matrices Xavier uniform.
///
/// "fan-in": tables normal(0, width^-0.5), matrices normal(0, columns^-0.5), the projections back
/// to the residual stream divided by sqrt(layers).
///
/// "depth": tables and matrices normal(0, (2 columns (l + 1))^-0.5) in layer l, counted from 0,
/// clipped to three standard deviations; outside of layers l is 0 (Zhang and Bottou 2025, arXiv
/// 2507.03285, table 6).
///
/// All: norms 1, biases 0, recurrent weights and biases uniform in +-1/sqrt(width of the cells).
/// Then the modules derived from OwnFirstValues fill their own parameters, in the order of
/// registration. Throws Error{bad_config} for another scheme.
void initialise(torch::nn::Module& module, const std::string& scheme, std::int64_t layers);

/// A module that initialises some of its parameters itself.
class OwnFirstValues {
 public:
  virtual ~OwnFirstValues() = default;
  virtual void first_values() = 0;
};

/// Disables initialise() in this thread while the object exists, for models whose weights are read
/// from a file.
class NoFirstValues {
 public:
  NoFirstValues();
  ~NoFirstValues();
  NoFirstValues(const NoFirstValues&) = delete;
  NoFirstValues& operator=(const NoFirstValues&) = delete;

 private:
  bool before_;
};

}  // namespace nn
