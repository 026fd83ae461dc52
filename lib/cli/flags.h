#pragma once
// Makes the flags of a CLI::App from fields.
// Maps option names of other programs (transformers, nanoGPT, fairseq, llama.cpp, ...) to ours.

#include "cli/run.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace cli {

/// Names of options in other programs, a line a meaning: "lr: learning-rate max-lr". Before the
/// colon are the options here, of which the first that a program has is suggested.
extern const std::string_view kFlagNames;

/// Makes an app without flags.
std::unique_ptr<CLI::App> make_app(const Program& program);

/// Adds a flag, or an argument, that assigns to `field` and inserts the field's name into
/// `context.given`. `field` and `context` must outlive the app.
void add_field(CLI::App& app, const core::Field& field, Context& context);

/// Returns the names of a flag, "-o,--output"; empty for an argument without a flag.
std::string flags_of(const CLI::Option& option);

/// Describes in one line what is wrong with the command line.
std::string parse_message(const CLI::App& app, const CLI::ParseError& error);

/// Returns a hint for an unknown option. If `flag`, in any case and with '_' for '-', is one of
/// `flags` or another program's name for one of them, the hint is "; did you mean --lr?". If it is
/// a name for input files and the program `takes_files`, the hint says that files need no option.
/// Otherwise the result is empty.
std::string hint_for_other_name(
    const std::string& flag, const std::vector<std::string>& flags, bool takes_files);

}  // namespace cli
