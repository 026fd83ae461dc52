#pragma once
// Makes the flags of a CLI::App from fields.

#include <memory>
#include <string>

#include "cli/run.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace cli {

/// Makes an app without flags.
std::unique_ptr<CLI::App> make_app(const Program& program);

/// Adds a flag, or an argument, that assigns to `field` and inserts the field's name into
/// `context.given`. `field` and `context` must outlive the app.
void add_field(CLI::App& app, const core::Field& field, Context& context);

/// Returns the names of a flag, "-o,--output"; empty for an argument without a flag.
std::string flags_of(const CLI::Option& option);

/// Describes in one line what is wrong with the command line.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cli
