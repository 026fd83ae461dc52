#pragma once
// The text of --help.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

struct Program;

/// Makes --help of each --help=WHAT in front of "--", and returns the last WHAT: "all", or the
/// heading of a group in small letters with hyphens, or its beginning. Empty: the options used most
/// are asked for (all, of a program that does not say which).
std::string take_help(std::vector<std::string>& arguments);

/// Own options come in the order of their groups, those that all programs share last. `width`:
/// columns to wrap at; 0: none. Throws Error{usage} for a WHAT that names no group, listing those
/// that there are.
std::string help_text(const CLI::App& app, const Program& program, const std::string& what,
                      std::size_t width);

}  // namespace cli
