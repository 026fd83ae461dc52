#pragma once
// Option type of an interpolation weight: a number or "gate".

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

/// Returns the number that is the whole text; nullopt: none.
std::optional<double> number_in(std::string_view text);
/// Splits a text at each `between`.
std::vector<std::string> pieces(std::string_view text, char between);

/// Weight from 0 to below 1, `gate`, or `auto` (unset).
class Share {
 public:
  Share() = default;    ///< auto
  Share(double value);  // NOLINT: a number is a share

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
class ShareList {
 public:
  ShareList() = default;  ///< auto
  ShareList(std::initializer_list<double> values) : ShareList(std::vector<double>(values)) {}
  ShareList(const std::vector<double>& values);  // NOLINT: numbers are shares

  bool gated() const;
  bool open() const;
  /// Returns the numbers; see Share::value().
  std::vector<double> values(const char* flag, double otherwise = 0) const;
  std::vector<std::string>* target() { return &texts_; }

 private:
  std::vector<std::string> texts_ = {Share::kAuto};
};

}  // namespace infer
