#pragma once
// Summarises the work of a program that writes its data to stdout.
// Writes rows of a few values each, for a plotter or jq.

#include <initializer_list>

#include "cli/run.h"
#include "core/io.h"

namespace cli {

/// SummaryOptions holds the file of --report.
struct SummaryOptions {
  std::string report;
  void fields(core::FieldList& f);
  /// Throws Error{usage} if --report is given and the program has no figures to report.
  void check(bool has_figures) const;
};

/// A Summary writes a note to stderr or, with --json, its figures as a JSON line; it also writes
/// this line to the file of --report.
class Summary {
 public:
  /// Opens the report file, so that an error is found before the work starts. Keeps a reference to
  /// `context`. Throws Error{cannot_create}, and Error{usage} if the report is stdout, which is for
  /// data.
  Summary(const Context& context, const SummaryOptions& options);
  /// Writes the summary; `lines` are the text of the note.
  void commit(const core::OrderedJson& figures, const std::vector<std::string>& lines);

 private:
  const Context& context_;
  std::optional<core::Output> report_;
};

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
