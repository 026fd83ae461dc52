#pragma once
// Options in a file: what --config reads and --print-config writes.
//
//   # comment
//   layers = 4
//   cutoffs = [2000, 10000]
//   arch = "transformer"     quotes may be left out, of [a, b] the brackets too
//
// A file that begins with { is a JSON object with the same keys (model/config.json's options, say).
// '-' and '_' are the same in a key.

#include <set>
#include <string>

#include "core/options.h"

namespace cli {

/// The fields that are no positionals, one a line, each under its help.
std::string format_config(const core::FieldList& fields);

/// Sets each field that `text` names and `given` does not (flags win), and adds it to `given`.
/// Throws Error{bad_config} as ORIGIN:LINE for an unknown key, one that stands twice or a bad
/// value.
void read_config(const std::string& text, const std::string& origin, const core::FieldList& fields,
                 std::set<std::string>& given);

}  // namespace cli
