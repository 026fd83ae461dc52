#pragma once
// Makes the flags of a CLI::App from fields.
// Maps option names of other programs (transformers, nanoGPT, fairseq, llama.cpp, ...) to ours.
// Writes the text of --help.
// Defines the flags that all programs have.
// Writes the flags of a program as a table for other programs; shell completions are generated from
// it.

#include "cli/run.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace cli {

/// Names of options in other programs, a line a meaning: "lr: learning-rate max-lr". Before the
/// colon are the options here, of which the first that a program has is suggested. What follows a
/// second colon is said instead: to programs with the option, or to those that take files if there
/// is none.
extern const std::string_view kFlagNames;

/// Makes an app without flags.
std::unique_ptr<CLI::App> make_app(const Program& program);

/// Adds a flag, or an argument, that assigns to `field` and inserts the field's name into
/// `context.given`. `field` and `context` must outlive the app.
void add_field(CLI::App& app, const core::Field& field, Context& context);

/// Describes in one line what is wrong with the command line.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error);

/// Returns a hint for an unknown option. If `flag`, in any case and with '_' for '-', is one of
/// `flags` or another program's name for one of them, the hint is "; did you mean --lr?". If it is
/// a name for input files and the program `takes_files`, the hint says that files need no option.
/// Otherwise the result is empty.
std::string hint_for_other_name(
    const std::string& flag, const std::vector<std::string>& flags, bool takes_files);

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

}  // namespace cli
