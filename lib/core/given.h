#pragma once
// Options that were given and do not go with another one.

#include <set>
#include <string>
#include <vector>

#include "core/options.h"

namespace core {

/// Throws Error{usage}, "--MINE: WHY; leave --FLAG out", for the first of the flags that was given.
void leave_out(const char* mine, const char* why, const std::vector<std::string>& flags,
               const std::set<std::string>& given);

/// The same for all flags of a list.
void leave_out(const char* mine, const char* why, const FieldList& fields,
               const std::set<std::string>& given);

}  // namespace core
