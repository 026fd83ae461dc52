#pragma once
// Describes a program's command line as text. A small program that has this text can answer --help
// and refuse wrong flags on behalf of a program that takes long to load.

#include "cli/run.h"

namespace cli {

/// An Offer is the command line of a program.
struct Offer {
  Command whole;  ///< for a program with verbs: without fields and body
  std::vector<Command> verbs = {};
  /// The bodies start another program, which parses again and opens the files.
  bool front = false;
};

/// Parses the command line and answers it or runs a body, as run() of run.h does.
int run(int argc, char** argv, const Offer& offer);

/// Returns, as JSON, the offer of a `main` that calls run(). Calls `main` without arguments; only
/// the code before run() is executed.
std::string offer_of(int (*main)(int, char**));
/// run() calls this function first. If offer_of() has called the program, keeps `offer` for it and
/// returns true; otherwise returns false.
bool keep_offer(const Offer& offer);

/// Parses the command line by `offer`, which offer_of() returned for a program. Answers --help,
/// --version, --print-config and wrong flags or values. Otherwise calls `work` with signals and
/// descriptors in their original state.
int front(int argc, char** argv, std::string_view offer, const std::function<int()>& work);

}  // namespace cli
