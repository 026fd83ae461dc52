#pragma once
// Parts of the joint softmax: entries beside the head's tokens. Each kind has its own temperature
// and log-weight.

#include <string>

#include "core/options.h"
#include "nn/base/torch.h"

namespace infer {

/// Options of a part.
struct JointOptions {
  double temperature = 0;     ///< 0: the temperature common to all parts
  std::string bias = "auto";  ///< a number, `without`, or `auto` (unset)
  /// Lists the options NAME-joint-temperature and NAME-joint-bias; `entries` names the entries in
  /// the help.
  void fields(core::FieldList& f, const std::string& name, const std::string& entries);
  /// Returns whether all options are unset.
  bool open() const { return temperature == 0 && bias == "auto"; }
};

/// Settings of a part. The softmax divides an entry's score by the temperature and then adds the
/// bias, a log-weight.
struct JointPart {
  std::string name;        ///< prefix of its options
  double temperature = 0;  ///< 0: the temperature common to all parts
  double bias = 0;         ///< -infinity: leaves the entries out
  bool trained = false;    ///< the model was trained with this part; leaving it out changes the
                           ///< model

  /// Applies the options; unset options keep the present values. Throws Error{usage}.
  void take(const JointOptions& options);
  /// Writes the settings into the options.
  void settle(JointOptions& options) const;
  bool plain() const { return temperature == 0 && bias == 0; }
};

/// Throws Error{usage} for a temperature, --FLAG, below the least one; 0 is auto.
void check_temperature(const std::string& flag, double temperature);
/// Largest bias, and magnitude of the least finite one.
inline constexpr double kMostBias = 1e6;
/// Returns "without" or the number as text.
std::string bias_text(double bias);

/// Adds a part's bias to log-masses; nn::kUnseen if no entry is visible or the part is left out.
torch::Tensor biased(const torch::Tensor& masses, double bias);

}  // namespace infer
