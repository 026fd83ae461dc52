#pragma once
// metrics.jsonl and timings.jsonl: lines that are appended, and cut back where a run goes on from a
// checkpoint.

#include <cstdint>
#include <string>

#include "core/json.h"

namespace train {

/// JSON lines, each with a "step" that never falls. Not thread safe.
class Log {
 public:
  /// Opens or creates the file and drops what stands behind update `through`: lines of later
  /// updates, and a last line that was cut. Throws Error{cannot_create}, Error{io}, Error{bad_data}
  /// for a line that is not such a line.
  Log(const std::string& path, std::int64_t through);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// One line, handed to the system at once. Throws Error{io}.
  void write(const core::OrderedJson& line);
  /// Waits until all lines are on disk.
  void sync();

 private:
  std::string path_;
  int fd_ = -1;
};

/// `value` with seven significant digits, as people read figures.
double rounded(double value);

}  // namespace train
