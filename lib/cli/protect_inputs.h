#pragma once
// Prevents a program's output from replacing one of its inputs.

#include <string>

#include "cli/run.h"

namespace cli {

/// Registers the program's inputs with core::protect_input(): the arguments without a flag, the
/// values of the options that the program lists as inputs, and its config file. Throws Error{usage}
/// if `output` is inside a folder that is an input.
void protect_inputs(const core::FieldList& fields, const Program& program,
                    const std::string& config, const std::string& output);

}  // namespace cli
