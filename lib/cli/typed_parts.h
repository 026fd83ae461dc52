#pragma once
// Formats a result whose list of parts may be empty.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "core/json.h"

namespace cli {

/// Behaves like format_parts(), but with --json adds the `type` also to a result without parts.
inline std::string format_typed_parts(const Context& context, const core::OrderedJson& report,
                                      const std::vector<core::OrderedJson>& parts) {
  if (!context.json || !parts.empty()) return format_parts(context, report, parts);
  core::OrderedJson typed = {{"type", "report"}};
  typed.update(report);
  return format_report(context, typed);
}

}  // namespace cli
