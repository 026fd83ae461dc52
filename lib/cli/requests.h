#pragma once
// The flags that all programs have.

#include <string>

#include "cli/run.h"

namespace CLI {
class App;
}

namespace cli {

/// Flags that ask for a text, and the file that sets options.
struct Requests {
  bool version = false, build_info = false, print_flags = false, print_config = false;
  std::string config;
  core::FieldList values;  ///< the flags with a value that no config file sets
};

/// The fields of a program and those that all programs have and a config file may set.
core::FieldList with_common(core::FieldList fields, Context& context);

/// The heading in --help of what all programs share.
inline constexpr const char* kSharedGroup = "Shared by all programs";

/// Adds the flags that ask for a text.
void add_requests(CLI::App& app, Requests& requests);
/// Adds these and all others that programs share, but for the fields of with_common(), which are
/// there. `context` and `requests` must outlive the app.
void add_common(CLI::App& app, Context& context, Requests& requests);

/// Prints a text that was asked for on stdout; returns the exit code.
int print(const std::string& text);
/// Answers --version, --build-info and --print-flags; -1 where none was given.
int answer_request(const CLI::App& app, const Requests& requests, const Context& context);

}  // namespace cli
