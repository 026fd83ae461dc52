#pragma once
// The least value of a smooth function of few numbers, by L-BFGS.

#include <functional>
#include <vector>

namespace infer {

using Numbers = std::vector<double>;

/// Its value at `at`; `gradient`, as long as `at`, is filled.
using Smooth = std::function<double(const Numbers& at, Numbers& gradient)>;

/// Goes on from `at`, which becomes the lowest point that was seen: never above where it began. The
/// same steps on any machine that adds alike. Returns the value there.
double minimise(const Smooth& function, Numbers& at, int most_steps = 200);

}  // namespace infer
