#pragma once
// Writes the flags of a program as a table for other programs; shell completions are generated from
// it.

#include <string>

namespace CLI {
class App;
}

namespace cli {

/// Returns one tab-separated line per flag: its command (for a program with commands), its names
/// (-o,--output; FILE for an argument without a flag), its value (empty for a switch; N, X, TEXT,
/// FILE, PATH, BYTES, or the choices as a|b), the default, the help. A command itself is a line
/// with only its name and help.
std::string flag_table(const CLI::App& app);

}  // namespace cli
