#pragma once
// Writes rows of a few values each, for a plotter or jq.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "cli/run.h"
#include "core/io.h"

namespace cli {

/// Columns writes tab-separated lines below a header line; with --json, one object per line.
/// Non-integral numbers are written with six digits.
class Columns {
 public:
  using Value = std::variant<std::int64_t, double, std::string>;
  /// Writes the header line, except with --json. `out` must outlive this object.
  Columns(const Context& context, core::ByteSink& out, std::vector<std::string> names);
  /// Writes one row, with one value for each name.
  void row(std::initializer_list<Value> values);

 private:
  core::ByteSink& out_;
  std::vector<std::string> names_;
  bool json_;
};

}  // namespace cli
