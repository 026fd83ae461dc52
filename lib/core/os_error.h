#pragma once
// Converts a failed system call into an Error that a user understands.

#include <string>

#include "core/error.h"

namespace core {

/// Throws Error{otherwise} with the text "WHAT: text of `error`", where `error` is an errno value.
/// If descriptors or memory are exhausted, the code is out_of_memory instead and the text says what
/// to do.
[[noreturn]] void fail_errno(Code otherwise, const std::string& what, int error);

}  // namespace core
