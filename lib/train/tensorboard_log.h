#pragma once
// Metrics as TensorBoard reads them: a file of events in the model's folder.
//
//   record  length, 8 bytes; its masked CRC-32C, 4 bytes; the event; its masked CRC-32C, 4 bytes
//   event   protocol buffer: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string) or
//           summary = 5 {value = 1 {tag = 1 (string), simple_value = 2 (float)}, ...}
//
// All little-endian (TensorFlow's record_writer and event.proto).

#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace train {

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
  ~TensorBoardLog();
  TensorBoardLog(const TensorBoardLog&) = delete;
  TensorBoardLog& operator=(const TensorBoardLog&) = delete;

  /// Writes a line of metrics.jsonl to the system at once. Throws Error{io}.
  void write(const core::OrderedJson& line);

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace train
