#pragma once
// What a failed call of the system means to a user.

#include <string>

#include "core/error.h"

namespace core {

/// Throws Error{otherwise} "WHAT: text of `error`" (errno of a call). Where descriptors or memory
/// ran out the code is out_of_memory and the text says what to do, whatever was being opened.
[[noreturn]] void fail_errno(Code otherwise, const std::string& what, int error);

}  // namespace core
