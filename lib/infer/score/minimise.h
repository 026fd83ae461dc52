#pragma once
// Minimises a smooth function of few variables by L-BFGS.

#include <functional>
#include <vector>

namespace infer {

using Numbers = std::vector<double>;

/// Returns the value at `at` and fills `gradient`, of equal length.
using Smooth = std::function<double(const Numbers& at, Numbers& gradient)>;

/// Minimises from `at`, which becomes the lowest point seen, never above the start. Deterministic
/// on machines with equal floating-point results. Returns the value there.
double minimise(const Smooth& function, Numbers& at);

}  // namespace infer
