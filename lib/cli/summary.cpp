#include "cli/summary.h"

#include "cli/progress.h"
#include "core/plain_text.h"

namespace cli {
namespace {

std::string cell_of(const Columns::Value& value, bool json) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.6g}", *number);
  const auto& text = std::get<std::string>(value);
  return json ? core::dump(core::Json(text)) : core::printable(text);
}

}  // namespace

void SummaryOptions::fields(core::FieldList& f) {
  f("report", report, "file for the results as a JSON line");
}

void SummaryOptions::check(bool has_figures) const {
  if (!has_figures && !report.empty())
    core::bad_usage("--report: this run has no results to report; leave it out");
}

Summary::Summary(const Context& context, const SummaryOptions& options) : context_(context) {
  if (options.report.empty()) return;
  if (options.report == "-") core::bad_usage("--report: takes a file; stdout has the output");
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

Columns::Columns(const Context& context, core::ByteSink& out, std::vector<std::string> names)
    : out_(out), names_(std::move(names)), json_(context.json) {
  if (!json_) out_.write(fmt::format("{}\n", fmt::join(names_, "\t")));
}

void Columns::row(std::initializer_list<Value> values) {
  std::string line;
  auto name = names_.begin();
  for (const auto& value : values) {
    const char* const before = line.empty() ? (json_ ? "{" : "") : (json_ ? "," : "\t");
    line += before + (json_ ? fmt::format("\"{}\":", *name++) : "") + cell_of(value, json_);
  }
  out_.write(line + (json_ ? "}\n" : "\n"));
}

}  // namespace cli
