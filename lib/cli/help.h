#pragma once
// Writes the text of --help.
// Defines the flags that all programs have.
// Writes the flags of a program as a table for other programs; shell completions are generated from
// it.

#include "cli/run.h"

namespace CLI {
class App;
}

namespace cli {

struct Program;

/// Replaces each --help=WHAT before "--" by --help, and returns the last WHAT. WHAT is "all", or
/// the heading of a group or a prefix of it, in lower case with hyphens. Returns an empty text for
/// a plain --help, which shows the most used options. A program that does not list its most used
/// options shows all.
std::string take_help(std::vector<std::string>& arguments);

/// Returns a row of the help text: `left`, an option or a command, and from column 30 what it does,
/// wrapped at `width` columns (0: not at all). Below 60 columns, the text is below `left`.
std::string help_row(std::string left, const std::string& text, std::size_t width);

/// Returns the help text: the program's options in the order of their groups, then the options that
/// all programs share. `width` is the number of columns to wrap at; 0 disables wrapping. Throws
/// Error{usage}, listing the groups, if `what` names no group.
std::string help_text(
    const CLI::App& app, const Program& program, const std::string& what, std::size_t width);

/// Requests holds the flags that ask for a text, and the name of the config file.
struct Requests {
  bool version = false, build_info = false, print_flags = false, print_config = false;
  std::string config;
  core::FieldList values;  ///< the flags that take a value and that a config file cannot set
};

/// Returns the program's fields followed by the common fields that a config file may set.
core::FieldList with_common(core::FieldList fields, Context& context);

/// The heading in --help of the flags that all programs share.
inline constexpr const char* kSharedGroup = "Shared by all programs";

/// Adds the flags that ask for a text.
void add_requests(CLI::App& app, Requests& requests);
/// Adds the flags of add_requests() and all other common flags, except the fields of with_common().
/// `context` and `requests` must outlive the app.
void add_common(CLI::App& app, Context& context, Requests& requests);

/// Prints a requested text on stdout and returns the exit code.
int print(const std::string& text);
/// Answers --version, --build-info and --print-flags, and returns the exit code; returns -1 if none
/// was given.
int answer_request(const CLI::App& app, const Requests& requests, const Context& context);

/// Returns one tab-separated line per flag: its command (for a program with commands), its names
/// (-o,--output; FILE for an argument without a flag), its value (empty for a switch; N, X, TEXT,
/// FILE, PATH, BYTES, or the choices as a|b), the default, the help. A command itself is a line
/// with only its name and help.
std::string flag_table(const CLI::App& app);

}  // namespace cli
