#pragma once
// How every program starts and ends: flags, --help, --version, --config, errors and exit codes.
// Handles the signals that end or stop a program.
// Handles stdin, stdout and stderr if the caller closed them.
// Prevents a program's output from replacing one of its inputs.
// Handles memory-mapped files that another process truncates.

#include "core/options.h"

namespace cli {

/// Closes what stands for those of stdin, stdout and stderr that were closed at the start.
void close_filled_descriptors();
/// Returns true if the program was started with stdout closed (>&-).
bool stdout_was_closed();

/// Changes the handlers so that the first SIGTERM, SIGINT, SIGHUP, SIGUSR1 or SIGUSR2 only makes
/// stop_requested() true; a second one ends the process.
void catch_stop_signals();
bool stop_requested();

/// A Program holds what --help says besides the flags.
struct Program {
  std::string name;
  std::string summary;  ///< one sentence
  std::string example;  ///< one or more lines, shown at the end of --help
  /// The options whose values are input files or folders of input files. As with arguments without
  /// a flag, no output may replace these inputs.
  std::vector<std::string> inputs = {};
  /// The options that plain --help shows, the most used first; empty: all options.
  std::vector<std::string> used_most = {};
  std::string output = {};  ///< the help of -o; empty: the usual text
  std::string usage = {};   ///< what --help shows behind the name; empty: from the options
  bool draws = true;        ///< it draws random numbers, and has --seed
};
/// Returns `program` without --seed.
inline Program without_seed(Program program) { return program.draws = false, program; }

/// A Context holds the values of the flags that all programs share.
struct Context {
  Program program;
  std::string output;  ///< the value of -o; empty: stdout
  bool quiet = false;
  std::int64_t verbose = 0;
  bool json = false;
  bool force = false;  ///< allows binary data on a terminal
  std::int64_t seed = 1;
  /// The value of -j. In a body it is never 0; the default is the number of processors.
  std::int64_t jobs = 0;
  std::set<std::string> given;  ///< the names of the fields that a flag or a config file set
  std::set<std::string> flags;  ///< those that a flag set
};

using Body = std::function<int(const Context&)>;

/// Parses the command line, calls the body, prints one line for an error and returns the exit code
/// (core::Code).
int run(
    int argc, char** argv, const Program& program, const core::FieldList& fields, const Body& body);

template <class Options, class F>
int run(int argc, char** argv, const Program& program, Options& options, F body) {
  return run(argc, argv, program, core::list_fields(options),
      [&](const Context& context) { return static_cast<int>(body(options, context)); });
}

/// A Command is one verb of a program that has several (`shard info`).
struct Command {
  Program program;
  core::FieldList fields;
  Body body;
};
int run(int argc, char** argv, const Program& program, const std::vector<Command>& commands);
/// Makes a verb without --seed, whose options are listed and passed to its body; `options` must
/// outlive the run.
template <class Options, class F>
Command command(std::string name, std::string summary, std::string example, Options& options,
    F body, std::vector<std::string> inputs = {}) {
  return {
      without_seed({std::move(name), std::move(summary), std::move(example), std::move(inputs)}),
      core::list_fields(options), [&options, body](const Context& context) {
        return static_cast<int>(body(options, context));
      }};
}

/// Throws Error{usage} if `context.output` is stdout, stdout is a terminal and --force was not
/// given.
void refuse_binary_to_terminal(const Context& context);

/// Registers the program's inputs with core::protect_input(): the arguments without a flag, the
/// values of the options that the program lists as inputs, and its config file. Throws Error{usage}
/// if `output` is inside a folder that is an input.
void protect_inputs(const core::FieldList& fields, const Program& program,
    const std::string& config, const std::string& output);

}  // namespace cli
