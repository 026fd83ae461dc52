#pragma once
// Option type of an interpolation weight: a number or "gate".
// Parts of the joint softmax: entries beside the head's tokens. Each kind has its own temperature
// and log-weight.

#include <initializer_list>

#include "core/options.h"
#include "core/units.h"
#include "nn/base/torch.h"

namespace infer {

/// Weight from 0 to below 1, `gate`, or `auto` (unset).
class MemoryWeight {
 public:
  MemoryWeight() = default;    ///< auto
  MemoryWeight(double value);  // NOLINT: a number is a share

  bool gated() const { return text_ == kGate; }
  bool open() const { return text_ == kAuto; }
  /// Returns the number; 0 for `gate`, `otherwise` if unset. Throws Error{usage} with the flag's
  /// name for an invalid text.
  double value(const char* flag, double otherwise = 0) const;
  std::string* target() { return &text_; }

  static constexpr const char *kGate = "gate", *kAuto = "auto";

 private:
  std::string text_ = kAuto;
};

/// Several weights, given separately or comma-separated, or `gate`, or `auto`.
class MemoryWeights {
 public:
  MemoryWeights() = default;  ///< auto
  MemoryWeights(std::initializer_list<double> values)
      : MemoryWeights(std::vector<double>(values)) {}
  MemoryWeights(const std::vector<double>& values);  // NOLINT: numbers are shares

  bool gated() const { return texts_.size() == 1 && texts_[0] == MemoryWeight::kGate; }
  bool open() const { return texts_.size() == 1 && texts_[0] == MemoryWeight::kAuto; }
  /// Returns the numbers; see MemoryWeight::value().
  std::vector<double> values(const char* flag, double otherwise = 0) const;
  std::vector<std::string>* target() { return &texts_; }

 private:
  std::vector<std::string> texts_ = {MemoryWeight::kAuto};
};

/// Formats weights for a signature: one number if all are equal.
std::string weight_text(std::span<const double> weights);

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
