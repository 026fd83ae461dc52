#pragma once
// The options of memories that a request may change.

#include <string>

#include "infer/sources/memory_options.h"

namespace infer {

/// `started` with what `asked` says, a JSON object whose members are options of memories, as
/// `--help` names them ('_' for '-'). A list that names files may only be left out: []. Throws
/// Error{usage} naming the member that is not known, names a file or has a wrong value.
MemoryOptions request_memory(const MemoryOptions& started, const std::string& asked);

}  // namespace infer
