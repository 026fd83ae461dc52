#pragma once
// Writers of metrics.jsonl and timings.jsonl: append-only files that are truncated when a run
// resumes from a checkpoint.
// Metrics as TensorBoard reads them: a file of events in the model's folder.
//
//   record  length, 8 bytes; its masked CRC-32C, 4 bytes; the event; its masked CRC-32C, 4 bytes
//   event   protocol buffer: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string) or
//           summary = 5 {value = 1 {tag = 1 (string), simple_value = 2 (float)}, ...}
//
// All little-endian (TensorFlow's record_writer and event.proto).

#include "core/json.h"
#include "core/temporary_file.h"

namespace train {

/// JSON lines, each with a non-decreasing "step". Not thread safe.
class Log {
 public:
  /// Opens or creates the file and removes everything after step `through`: lines of later steps
  /// and a truncated last line. Throws Error{cannot_create}, Error{io}, Error{bad_data} for an
  /// invalid line.
  Log(const std::string& path, std::int64_t through);

  /// Writes one line to the system at once. Throws Error{io}.
  void write(const core::OrderedJson& line);
  /// Syncs all lines to disk.
  void sync();

 private:
  std::string path_;
  core::Descriptor fd_;
};

/// Rounds `value` to seven significant digits, for reports.
double rounded(double value);

/// Returns the CRC-32C (polynomial 0x1EDC6F41, Castagnoli) of `bytes`, rotated and offset as in
/// records.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Returns a record with the numbers of a line of metrics.jsonl, except "step", by name.
std::string scalars_record(const core::OrderedJson& line, double wall_time);

/// Writes a new file for each start: events.out.tfevents.SECONDS.PROCESS. If a step has two values,
/// TensorBoard shows that of the later start. Not thread safe.
class TensorBoardLog {
 public:
  /// Creates the file. Throws Error{cannot_create}, Error{io}.
  explicit TensorBoardLog(const std::string& folder);

  /// Writes a line of metrics.jsonl to the system at once. Throws Error{io}.
  void write(const core::OrderedJson& line);

 private:
  std::string path_;
  core::Descriptor fd_;
};

}  // namespace train
