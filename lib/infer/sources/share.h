#pragma once
// A share of a mixture, as it is asked for: a number, or that a gate gives it.

#include <initializer_list>
#include <string>
#include <vector>

namespace infer {

/// From 0 to below 1, `gate`, or `auto`, which leaves it open.
class Share {
 public:
  Share() = default;    ///< auto
  Share(double value);  // NOLINT: a number is a share

  bool gated() const { return text_ == kGate; }
  bool open() const { return text_ == kAuto; }
  /// 0 for a gate, `otherwise` where it is open. Throws Error{usage} with the flag's name for what
  /// is none of these.
  double value(const char* flag, double otherwise = 0) const;
  std::string* target() { return &text_; }

  static constexpr const char *kGate = "gate", *kAuto = "auto";

 private:
  std::string text_ = kAuto;
};

/// Several numbers, each given alone or with commas between them, `gate` or `auto`.
class ShareList {
 public:
  ShareList() = default;  ///< auto
  ShareList(std::initializer_list<double> values) : ShareList(std::vector<double>(values)) {}
  ShareList(const std::vector<double>& values);  // NOLINT: numbers are shares

  bool gated() const;
  bool open() const;
  /// See Share::value().
  std::vector<double> values(const char* flag, double otherwise = 0) const;
  std::vector<std::string>* target() { return &texts_; }

 private:
  std::vector<std::string> texts_ = {Share::kAuto};
};

}  // namespace infer
