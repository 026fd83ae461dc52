#pragma once
// Three moons (Zhang et al. 2024, section 3): moons that circle a planet, each with a period of its
// own, seen as points of the plane.

#include <array>
#include <cstdint>
#include <vector>

namespace task {

inline constexpr std::size_t kMoons = 3;
using Periods = std::array<double, kMoons>;  ///< time units

/// The time after which all moons stand as before.
double common_period(const Periods& periods);

/// The triples of different periods from {0.5, 1, ..., 3.5} with the nine least common periods,
/// shortest first; equal ones by their periods. The last is for validation, the others for
/// training.
std::vector<Periods> chosen_periods();

/// `n` observations of (sin, cos) of each moon from number `first` on, `per_unit` a time unit, all
/// moons with one phase (radians). Row-major (n, 6).
std::vector<float> observe(const Periods& periods, double per_unit, double phase,
                           std::int64_t first, std::int64_t n);

}  // namespace task
