#pragma once
// Parts of the joint softmax: entries beside the head's words, each kind with its own temperature
// and weight.

#include <string>

#include "core/options.h"
#include "nn/base/torch.h"

namespace infer {

/// What is asked for of a part.
struct JointOptions {
  double temperature = 0;     ///< 0: that of all parts
  std::string bias = "auto";  ///< a number, `without`, or `auto`, which leaves it open
  /// NAME-joint-temperature and NAME-joint-bias; `entries`: whose scores they are.
  void fields(core::FieldList& f, const std::string& name, const std::string& entries);
  /// Nothing is asked for.
  bool open() const { return temperature == 0 && bias == "auto"; }
};

/// An entry's score in the softmax is divided by the temperature; then the bias, a log-weight, is
/// added to it.
struct JointPart {
  std::string name;        ///< of its options
  double temperature = 0;  ///< 0: that of all parts
  double bias = 0;         ///< -infinity: its entries are left out
  bool trained = false;    ///< the model was trained with it: without it the model is another

  /// Takes what is asked for; what is open stays. Throws Error{usage}.
  void take(const JointOptions& options);
  /// The options that come to it.
  void settle(JointOptions& options) const;
  bool plain() const { return temperature == 0 && bias == 0; }
};

/// The largest bias, and the least that is finite.
inline constexpr double kMostBias = 1e6;
/// "without", or the number.
std::string bias_text(double bias);

/// Log-masses with a part's bias, nn::kUnseen where nothing is seen or the part is left out.
torch::Tensor biased(const torch::Tensor& masses, double bias);

}  // namespace infer
