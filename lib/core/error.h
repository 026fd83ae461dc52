#pragma once
// The exception type of all of lib/, and the exit codes that every program documents.
// Converts a failed system call into an Error that a user understands.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace core {

/// Code lists the exit codes (those of sysexits.h where one fits). A program exits with the code of
/// the Error that its body throws.
enum class Code : int {
  ok = 0,
  no = 1,              ///< the answer is no (a comparison, --fail-above)
  usage = 64,          ///< flags or arguments are wrong
  bad_data = 65,       ///< an input is damaged, truncated or inconsistent with another input
  no_input = 66,       ///< an input does not exist or cannot be opened
  unavailable = 69,    ///< this build or machine lacks a device or feature
  bug = 70,            ///< the program has a bug
  out_of_memory = 71,  ///< memory is exhausted; the message names the flag to change
  cannot_create = 73,  ///< an output cannot be created
  io = 74,             ///< reading or writing failed, or the disk is full
  stopped = 75,        ///< a signal or time limit stopped it, state saved; rerun to resume
  rank_lost = 76,      ///< another process of the run was lost; rerun to resume
  bad_config = 78,     ///< a configuration has a bad or unknown key
};

/// Error is what lib/ throws for every failure. Its text is one line: where, what is wrong, what to
/// do.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& text) : std::runtime_error(text), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// Throws Error{code} with a formatted text.
template <class... Args>
[[noreturn]] void fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Throw Error{bad_data}, Error{usage}, Error{bad_config} or Error{bug} with a formatted text.
template <class... Args>
[[noreturn]] void bad_data(fmt::format_string<Args...> format, Args&&... args) {
  fail(Code::bad_data, format, std::forward<Args>(args)...);
}
template <class... Args>
[[noreturn]] void bad_usage(fmt::format_string<Args...> format, Args&&... args) {
  fail(Code::usage, format, std::forward<Args>(args)...);
}
template <class... Args>
[[noreturn]] void bad_config(fmt::format_string<Args...> format, Args&&... args) {
  fail(Code::bad_config, format, std::forward<Args>(args)...);
}
template <class... Args> [[noreturn]] void bug(fmt::format_string<Args...> format, Args&&... args) {
  fail(Code::bug, format, std::forward<Args>(args)...);
}

/// Throws Error{bad_data} for a value that was read: "ORIGIN: KEY is VALUE; allowed: ALLOWED".
template <class T>
[[noreturn]] void bad_value(
    std::string_view origin, std::string_view key, const T& value, std::string_view allowed) {
  bad_data("{}: {} is {}; allowed: {}", origin, key, value, allowed);
}

/// Returns the text of an errno value. Thread safe.
std::string error_text(int error_number);

/// Throws Error{otherwise} with the text "WHAT: text of `error`", where `error` is an errno value.
/// If descriptors or memory are exhausted, the code is out_of_memory instead and the text says what
/// to do.
[[noreturn]] void fail_errno(Code otherwise, const std::string& what, int error);

}  // namespace core
