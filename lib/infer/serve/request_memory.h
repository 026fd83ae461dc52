#pragma once
// Memory options that a request may change.

#include "infer/sources/memory_options.h"

namespace infer {

/// Returns `started` with the changes of `asked`, a JSON object whose members are memory options
/// named as in `--help` ('_' for '-'), and with these members as `flags`. Lists of files can only
/// be emptied: [], which leaves the source out (SourceKind::drop()). Throws Error{usage} that names
/// a member which is unknown, names a file or has an invalid value.
MemoryOptions request_memory(const MemoryOptions& started, const std::string& asked);

}  // namespace infer
