#pragma once
// Tells which options were chosen by their values.

#include "core/options.h"

namespace core {

/// Returns the names of the fields that differ from `defaults`, an untouched list of the same
/// fields.
std::vector<std::string> changed_fields(const FieldList& fields, const FieldList& defaults);
/// Returns the names of the options that are not at their defaults.
template <class Options> std::vector<std::string> changed(Options options) {
  Options defaults;
  return changed_fields(list_fields(options), list_fields(defaults));
}
/// Throws Error{usage} with the text "--MINE: WHY; leave --FLAG out" for the first such option.
template <class Options> void leave_out(const char* mine, const char* why, const Options& options) {
  for (const auto& flag : changed(options)) bad_usage("--{}: {}; leave --{} out", mine, why, flag);
}

/// Returns the fields that `names` has, as fields_to_json() does.
OrderedJson chosen_to_json(const FieldList& fields, const std::set<std::string>& names);

}  // namespace core
