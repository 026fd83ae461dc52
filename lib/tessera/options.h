#pragma once
// Settings by the names of the programs' options.

#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Options are names and values of a program's options, without the dashes:
///
///   {{"cache", "2000"}, {"datastore-lambda", "0.25"}, {"rescore", "true"}}
///
/// Names, values and defaults are those of the program's manual, and an option with several values
/// has its name several times. Every function that takes Options throws Error{64} for an unknown
/// name, with the nearest one, and for a value that the option does not accept. An option that is
/// also a member of a struct is set by either, not by both.
using Options = std::vector<std::pair<std::string, std::string>>;

}  // namespace tessera
