#pragma once
// Finds and removes temporary files that core::Output left when a process was killed.

#include <functional>
#include <string>
#include <string_view>

namespace core {

/// An OwnName returns true for a file name, without its folder, that the caller may remove.
using OwnName = std::function<bool(std::string_view name)>;

/// Removes the temporary files (temporary_file.h) of killed Outputs from `folder`, for output names
/// that `own` accepts. A temporary file whose name had to be shortened is not recognised. Files
/// that another process is writing remain. Throws Error{io}.
void remove_leftovers(const std::string& folder, const OwnName& own);

/// Returns true if `folder` is a folder, not a link to one, that holds only files whose names `own`
/// accepts, once the temporary files of killed Outputs are removed. Removes these. Throws
/// Error{io}.
bool holds_only(const std::string& folder, const OwnName& own);

}  // namespace core
