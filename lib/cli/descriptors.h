#pragma once
// stdin, stdout and stderr where the caller closed them.

namespace cli {

/// Puts /dev/null where one of them is closed, so that no file opened later takes its place: stdin
/// and stderr cannot be read or written there, nor can stdout.
void fill_closed_descriptors();
/// Closes those again.
void close_filled_descriptors();
/// The program was started with stdout closed (>&-).
bool stdout_was_closed();

}  // namespace cli
