#pragma once
// Generates the three moons (Zhang et al. 2024, section 3): moons that circle a planet, each with
// its own period, observed as points in the plane.

#include "core/base.h"

namespace task {

inline constexpr std::size_t kMoons = 3;
using Periods = std::array<double, kMoons>;  ///< time units

/// Returns the common period of all moons: the time after which their positions repeat.
double common_period(const Periods& periods);

/// Returns the triples of different periods from {0.5, 1, ..., 3.5} with the nine shortest common
/// periods, shortest first; ties are broken by the periods. The last triple is for validation, the
/// others for training.
std::vector<Periods> chosen_periods();

/// Returns `n` observations of (sin, cos) of each moon, starting with number `first`, `per_unit` of
/// them per time unit. All moons have the same phase in radians. Shape (n, 6), row-major.
std::vector<float> observe(
    const Periods& periods, double per_unit, double phase, std::int64_t first, std::int64_t n);

}  // namespace task
