#pragma once
// Writers of metrics.jsonl and timings.jsonl: append-only files that are truncated when a run
// resumes from a checkpoint.

#include <cstdint>
#include <string>

#include "core/json.h"

namespace train {

/// JSON lines, each with a non-decreasing "step". Not thread safe.
class Log {
 public:
  /// Opens or creates the file and removes everything after step `through`: lines of later steps
  /// and a truncated last line. Throws Error{cannot_create}, Error{io}, Error{bad_data} for an
  /// invalid line.
  Log(const std::string& path, std::int64_t through);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Writes one line to the system at once. Throws Error{io}.
  void write(const core::OrderedJson& line);
  /// Syncs all lines to disk.
  void sync();

 private:
  std::string path_;
  int fd_ = -1;
};

/// Rounds `value` to seven significant digits, for reports.
double rounded(double value);

}  // namespace train
