#pragma once
// A share of a mixture, as it is asked for: a number, or that a gate gives it.

#include <initializer_list>
#include <string>
#include <vector>

namespace infer {

/// From 0 to below 1, or `gate`.
class Share {
 public:
  Share(double value);  // NOLINT: a number is a share

  bool gated() const { return text_ == kGate; }
  /// 0 for a gate. Throws Error{usage} with the flag's name for what is neither.
  double value(const char* flag) const;
  std::string* target() { return &text_; }

  static constexpr const char* kGate = "gate";

 private:
  std::string text_;
};

/// Several numbers, each given alone or with commas between them, or `gate`.
class ShareList {
 public:
  ShareList(std::initializer_list<double> values) : ShareList(std::vector<double>(values)) {}
  ShareList(const std::vector<double>& values);  // NOLINT: numbers are shares

  bool gated() const;
  std::vector<double> values(const char* flag) const;
  std::vector<std::string>* target() { return &texts_; }

 private:
  std::vector<std::string> texts_;
};

}  // namespace infer
