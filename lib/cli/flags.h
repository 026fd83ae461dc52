#pragma once
// Fields as the flags of a CLI::App, and its help.

#include <memory>
#include <string>

#include "cli/run.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace cli {

/// Without flags.
std::unique_ptr<CLI::App> make_app(const Program& program);

/// Adds a flag, or an argument, that assigns to `field` and puts its name in `context.given`. Both
/// must outlive the app.
void add_field(CLI::App& app, const core::Field& field, Context& context);

/// "-o,--output"; empty: an argument without a flag.
std::string flags_of(const CLI::Option& option);

/// What is wrong with the command line, in one line.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cli
