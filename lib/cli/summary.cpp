#include "cli/summary.h"

#include "cli/progress.h"
#include "core/error.h"

namespace cli {

void SummaryOptions::fields(core::FieldList& f) {
  f("report", report, "file for the results as a JSON line");
}

void SummaryOptions::check(bool has_figures) const {
  if (!has_figures && !report.empty())
    core::fail(core::Code::usage, "--report: this run has no results to report; leave it out");
}

Summary::Summary(const Context& context, const SummaryOptions& options) : context_(context) {
  if (options.report.empty()) return;
  if (options.report == "-")
    core::fail(core::Code::usage, "--report: takes a file; stdout has the output");
  report_.emplace(options.report);
}

void Summary::commit(const core::OrderedJson& figures, const std::vector<std::string>& lines) {
  const std::string line = core::dump(figures) + "\n";
  if (report_) {
    report_->write(line);
    report_->commit();
  }
  if (context_.json) {
    to_stderr(line);
  } else {
    for (const auto& text : lines) note(context_, text);
  }
}

}  // namespace cli
