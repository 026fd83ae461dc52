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

/// Removes the temporary files of killed Outputs from `folder`, then returns true if every file
/// left in it has a name that `own` accepts. Returns false if `folder` is not a folder or is a link
/// to one. Throws Error{io}.
bool holds_only(const std::string& folder, const OwnName& own);

}  // namespace core
