#pragma once
// Compares the LibTorch version of the build with the loaded one.

#include <string>

namespace nn {

/// Returns the version of the loaded LibTorch, such as "2.13.0"; "" for versions before 2.9, which
/// do not report it.
std::string loaded_torch();

/// Checks that two versions "MAJOR.MINOR.PATCH" agree in MAJOR.MINOR, because LibTorch keeps the
/// layout of its types only within a minor version. `loaded` may be "" (a version before 2.9).
/// Throws Error{unavailable} that names both versions if they differ.
void expect_torch(const std::string& built, const std::string& loaded);

}  // namespace nn
