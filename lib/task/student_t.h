#pragma once
// Computes Student's t distribution, for intervals and tests of means.

namespace task {

/// Returns the probability that |T| >= |t|, for T with `freedom` > 0 degrees of freedom, which may
/// be fractional.
double t_two_sided(double t, double freedom);

/// Returns the t with P(|T| < t) = `confidence`, where 0 < confidence < 1.
double t_quantile(double confidence, double freedom);

}  // namespace task
