#pragma once
// The exception of every function of include/tessera.

#include <stdexcept>
#include <string>

namespace tessera {

/// Error is what the functions and constructors of these headers throw for bad input, for files
/// that cannot be read or written, and for settings that contradict each other. Its text is one
/// line: where, what is wrong, what to do. Other exceptions (but std::bad_alloc) are bugs of the
/// library.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// Returns the exit code with which the programs end for this error: 64 usage, 65 bad data, 66 no
  /// input, 69 unavailable, 70 bug, 71 out of memory, 73 cannot create, 74 io, 75 stopped, 78 bad
  /// configuration (man 7 tessera).
  int code() const { return code_; }

 private:
  int code_;
};

}  // namespace tessera
