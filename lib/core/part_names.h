#pragma once
// Collects the names of the parts of a divided command, for code that joins the parts.

#include <cstdint>
#include <map>
#include <string>

#include "core/launcher.h"

namespace core {

/// PartNames maps each part's index to the part's name.
class PartNames {
 public:
  /// Adds a part. Throws Error{usage}, naming both parts, if the index is already present.
  void add(const Part& part, const std::string& name);
  /// Checks that all parts are present. Throws Error{usage}, naming the first missing part and
  /// `flag`, the flag that takes the parts.
  void expect_all(std::string_view flag = {}) const;

  bool empty() const { return names_.empty(); }
  /// Returns the total number of parts, which the first added part declares.
  std::int64_t count() const { return count_; }
  /// name() returns the name of the part `index`, from 0; any() returns the name of the first part
  /// present.
  const std::string& name(std::int64_t index) const { return names_.at(index); }
  const std::string& any() const { return names_.begin()->second; }

 private:
  std::map<std::int64_t, std::string> names_;
  std::int64_t count_ = 0;
};

}  // namespace core
