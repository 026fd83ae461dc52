#pragma once
// A result and its parts where the parts may be none.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "core/json.h"

namespace cli {

/// format_parts(), but with --json the line of a result without parts says its `type` too.
inline std::string format_typed_parts(const Context& context, const core::OrderedJson& report,
                                      const std::vector<core::OrderedJson>& parts) {
  if (!context.json || !parts.empty()) return format_parts(context, report, parts);
  core::OrderedJson typed = {{"type", "report"}};
  typed.update(report);
  return format_report(context, typed);
}

}  // namespace cli
