#pragma once
// Student's t distribution, for intervals and tests of means.

namespace task {

/// The probability that |T| is at least |t|, for T with `freedom` degrees of freedom (above 0, not
/// necessarily whole).
double t_two_sided(double t, double freedom);

/// The t that |T| stays below with probability `confidence`, which is above 0 and below 1.
double t_quantile(double confidence, double freedom);

}  // namespace task
