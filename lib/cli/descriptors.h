#pragma once
// Handles stdin, stdout and stderr if the caller closed them.

namespace cli {

/// Opens /dev/null for each of stdin, stdout and stderr that is closed, so that no file opened
/// later gets its descriptor. The replacement has the wrong access mode, so reading stdin and
/// writing stdout or stderr still fail.
void fill_closed_descriptors();
/// Closes the descriptors that fill_closed_descriptors() opened.
void close_filled_descriptors();
/// Returns true if the program was started with stdout closed (>&-).
bool stdout_was_closed();

}  // namespace cli
