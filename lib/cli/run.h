#pragma once
// How every program starts and ends: flags, --help, --version, --config, errors, exit codes.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/descriptors.h"
#include "cli/signals.h"
#include "core/options.h"

namespace cli {

/// What --help says around the flags.
struct Program {
  std::string name;
  std::string summary;  ///< one sentence
  std::string example;  ///< a line or more, shown at the end of --help
  /// Options whose values are files, or folders of files, that are read: like the arguments without
  /// a flag, no output may take the place of one.
  std::vector<std::string> inputs = {};
  /// The options that --help shows, the most used first; empty: all of them.
  std::vector<std::string> used_most = {};
  std::string output = {};  ///< what -o takes; empty: where the output goes
};

/// The flags that all programs share, as they were given.
struct Context {
  Program program;
  std::string output;  ///< -o; empty: stdout
  bool quiet = false;
  std::int64_t verbose = 0;
  bool json = false;
  bool force = false;  ///< binary to a terminal
  std::int64_t seed = 1;
  std::int64_t jobs = 0;        ///< -j; never 0 in a body: the default is the number of processors
  std::set<std::string> given;  ///< names of the fields set by a flag or a config file

  bool was_given(const std::string& field) const { return given.count(field) > 0; }
};

using Body = std::function<int(const Context&)>;

/// Parses, calls the body, prints one line for an error, returns the exit code (core::Code).
int run(int argc, char** argv, const Program& program, const core::FieldList& fields,
        const Body& body);

template <class Options, class F>
int run(int argc, char** argv, const Program& program, Options& options, F body) {
  return run(argc, argv, program, core::list_fields(options),
             [&](const Context& context) { return static_cast<int>(body(options, context)); });
}

/// One verb of a program with several (`shard info`).
struct Command {
  Program program;
  core::FieldList fields;
  Body body;
};
int run(int argc, char** argv, const Program& program, const std::vector<Command>& commands);
/// A verb whose options are listed and handed to its body; `options` must outlive the run.
template <class Options, class F>
Command command(std::string name, std::string summary, std::string example, Options& options,
                F body, std::vector<std::string> inputs = {}) {
  return {{std::move(name), std::move(summary), std::move(example), std::move(inputs)},
          core::list_fields(options),
          [&options, body](const Context& context) {
            return static_cast<int>(body(options, context));
          }};
}

/// Throws Error{usage} if `context.output` is stdout, stdout is a terminal and --force was not
/// given.
void refuse_binary_to_terminal(const Context& context);

}  // namespace cli
