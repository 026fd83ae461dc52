#pragma once
// Reads and writes options as a TOML 1.0 file: --config reads it and --print-config writes it.
//
//   # a comment
//   seed = 7
//   # an option that was not given, with its default
//   #jobs = "auto"
//
//   [model]                     # the group that --help shows; a key may also precede all tables
//   arch = "transformer"
//   cutoffs = [2000, 10000]
//
// A file that begins with { is a JSON object with these keys and without tables. '-' and '_' are
// equivalent in keys and table names. Numbers with a unit ("2G"), "auto" and "none" are strings.

#include "core/options.h"

namespace cli {

/// Writes all fields except positional ones, each below its help: first those without a group, then
/// one table for each group. If there is a set `given`, fields that are not in it are comments, so
/// the file sets exactly what was set.
std::string format_config(
    const core::FieldList& fields, const std::set<std::string>* given = nullptr);

/// Sets each field that `text` names and `given` does not contain (flags take precedence), and adds
/// the field to `given`. Throws Error{bad_config} with ORIGIN:LINE for invalid TOML, an unknown key
/// or table, a key that occurs twice or in the table of another group, and a bad value.
void read_config(const std::string& text, const std::string& origin, const core::FieldList& fields,
    std::set<std::string>& given);

}  // namespace cli
