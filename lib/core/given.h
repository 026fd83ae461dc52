#pragma once
// Refuses options that cannot be combined with another option.

#include <set>
#include <string>
#include <vector>

#include "core/options.h"

namespace core {

/// Throws Error{usage} with the text "--MINE: WHY; leave --FLAG out" for the first of `flags` that
/// is in `given`.
void leave_out(const char* mine, const char* why, const std::vector<std::string>& flags,
               const std::set<std::string>& given);

/// Does likewise for all flags of a list of fields.
void leave_out(const char* mine, const char* why, const FieldList& fields,
               const std::set<std::string>& given);

}  // namespace core
