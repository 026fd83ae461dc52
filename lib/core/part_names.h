#pragma once
// Which parts of one work there are, and what each is called: for what puts them together.

#include <cstdint>
#include <map>
#include <string>

#include "core/launcher.h"

namespace core {

class PartNames {
 public:
  /// Throws Error{usage} naming both where the part is there already.
  void add(const Part& part, const std::string& name);
  /// Throws Error{usage} with the `flag` that takes the parts, naming the first that is not there.
  void expect_all(std::string_view flag = {}) const;

  bool empty() const { return names_.empty(); }
  /// Of how many parts the first that was added is one.
  std::int64_t count() const { return count_; }
  /// Of the part `index`, from 0, or of the first that is there.
  const std::string& name(std::int64_t index) const { return names_.at(index); }
  const std::string& any() const { return names_.begin()->second; }

 private:
  std::map<std::int64_t, std::string> names_;
  std::int64_t count_ = 0;
};

}  // namespace core
