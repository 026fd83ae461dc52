#pragma once
// Options in a file, TOML 1.0: what --config reads and --print-config writes.
//
//   # comment
//   seed = 7
//
//   [model]                     # the group that --help shows; a key may stand above all tables too
//   arch = "transformer"
//   cutoffs = [2000, 10000]
//
// A file that begins with { is a JSON object with the same keys, without tables.
// '-' and '_' are the same in a key and in the name of a table. Numbers with a unit ("2G") and
// "auto" are strings.

#include <set>
#include <string>

#include "core/options.h"

namespace cli {

/// The fields that are no positionals, each under its help: those without a group, then a table for
/// each group.
std::string format_config(const core::FieldList& fields);

/// Sets each field that `text` names and `given` does not (flags win), and adds it to `given`.
/// Throws Error{bad_config} as ORIGIN:LINE for what is not TOML, an unknown key or table, a key
/// that stands twice or in the table of another group, or a bad value.
void read_config(const std::string& text, const std::string& origin, const core::FieldList& fields,
                 std::set<std::string>& given);

}  // namespace cli
