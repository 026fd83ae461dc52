#pragma once
// What killed processes leave of core::Output's temporary files, and whose they are.

#include <functional>
#include <string>
#include <string_view>

namespace core {

/// Says whether a file of this name, without its folder, is the caller's to remove.
using OwnName = std::function<bool(std::string_view name)>;

/// Removes the temporary files (temporary_file.h) that killed Outputs left in `folder`, where the
/// output's name is `own` and not so long that its temporary file is called otherwise. What another
/// process is writing stays. Throws Error{io}.
void remove_leftovers(const std::string& folder, const OwnName& own);

/// True of a folder (no link to one) with nothing in it but files whose names are `own`, and what
/// killed Outputs left of them, which goes. Throws Error{io}.
bool holds_only(const std::string& folder, const OwnName& own);

}  // namespace core
