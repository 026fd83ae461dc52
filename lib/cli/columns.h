#pragma once
// Rows of a few values each, for a plotter or for jq.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "cli/run.h"
#include "core/io.h"

namespace cli {

/// Tab-separated lines below the names of the columns; with --json an object a line. Of numbers
/// that are not whole six digits are written.
class Columns {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;
  /// Writes the names where they stand once. `out` must outlive it.
  Columns(const Context& context, core::ByteSink& out, std::vector<std::string> names);
  /// A value for each name.
  void row(std::initializer_list<Value> values);

 private:
  core::ByteSink& out_;
  std::vector<std::string> names_;
  bool json_;
};

}  // namespace cli
