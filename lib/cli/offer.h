#pragma once
// What a program offers on its command line, as text: a small program that has the text can answer
// --help and refuse wrong flags for one that takes long to load.

#include <string>
#include <string_view>
#include <vector>

#include "cli/run.h"

namespace cli {

struct Offer {
  Command whole;  ///< where there are verbs: without fields and body
  std::vector<Command> verbs = {};
  bool front = false;  ///< the bodies hand over to a program that parses again, and opens the files
};

/// Parses and answers, or runs a body; what run() of run.h does.
int run(int argc, char** argv, const Offer& offer);

/// The offer of a `main` that calls run(), as JSON. It is called without arguments, and nothing of
/// it runs but what stands before run().
std::string offer_of(int (*main)(int, char**));
/// For run(): true while offer_of() calls, which has the offer then.
bool keep_offer(const Offer& offer);

/// Parses as the program of `offer` (as offer_of() gives it) would: --help, --version,
/// --print-config, wrong flags and values are answered here. Else `work` is called, with the
/// signals and descriptors as they were.
int front(int argc, char** argv, std::string_view offer, const std::function<int()>& work);

}  // namespace cli
