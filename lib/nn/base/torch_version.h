#pragma once
// Which LibTorch a program was built for, and which one it got.

#include <string>

namespace nn {

/// Major and minor version of the LibTorch that is loaded, as "2.13.0"; "" where it does not tell:
/// LibTorch before 2.9.
std::string loaded_torch();

/// Compares two versions, "MAJOR.MINOR.PATCH". LibTorch keeps the layout of its types within
/// MAJOR.MINOR, and nowhere else. `loaded` may be "", a version before 2.9. Throws
/// Error{unavailable} that names both where they differ.
void expect_torch(const std::string& built, const std::string& loaded);

}  // namespace nn
