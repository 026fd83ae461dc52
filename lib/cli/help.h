#pragma once
// Writes the text of --help.

#include "core/base.h"

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

}  // namespace cli
