#pragma once
// The flags of a program as a table for other programs: completions of shells are made of it.

#include <string>

namespace CLI {
class App;
}

namespace cli {

/// A line each, tab-separated: the command it belongs to (of programs with several), its names
/// (-o,--output; an argument without a flag: FILE), what value it takes (nothing for a switch; N,
/// X, TEXT, FILE, PATH, BYTES, or the choices as a|b), the default, the help. A command is a line
/// with nothing but its name and its help.
std::string flag_table(const CLI::App& app);

}  // namespace cli
