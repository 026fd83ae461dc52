#pragma once
// The one exception of the house, and the exit codes every program documents.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace core {

/// Exit codes (sysexits where one fits). A program ends with the code of the Error that left its
/// body.
enum class Code : int {
  ok = 0,
  no = 1,              ///< the answer is no (a comparison, --fail-above)
  usage = 64,          ///< wrong flags or arguments
  bad_data = 65,       ///< input that is damaged, cut short or does not belong together
  no_input = 66,       ///< an input that is not there or cannot be opened
  unavailable = 69,    ///< a device or feature this build or machine does not have
  bug = 70,            ///< a fault of the program
  out_of_memory = 71,  ///< and which flag to change
  cannot_create = 73,  ///< an output that cannot be made
  io = 74,             ///< reading or writing failed, disk full
  stopped = 75,        ///< stopped by a signal or a time limit, state saved: run again to go on
  rank_lost = 76,      ///< another process of the run was lost: run again to go on
  bad_config = 78,     ///< bad or unknown key in a configuration
};

/// Thrown by lib/ for everything that goes wrong; the text is one line: where: what; what to do.
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

/// Text of the current errno-like number, thread safe.
std::string error_text(int error_number);

}  // namespace core
