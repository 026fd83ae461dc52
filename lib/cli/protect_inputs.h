#pragma once
// No output of a program takes the place of one of its inputs.

#include <string>

#include "cli/run.h"

namespace cli {

/// The arguments without a flag are files to read, and so are the values of the options that the
/// program names, and its config file: core::Output refuses to replace one. Throws Error{usage}
/// where `output` stands in a folder that is read.
void protect_inputs(const core::FieldList& fields, const Program& program,
                    const std::string& config, const std::string& output);

}  // namespace cli
