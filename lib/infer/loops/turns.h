#pragma once
// Angles by which places turn pairs of channels (nn/layers/positions.h).

#include <cmath>
#include <cstdint>
#include <vector>

namespace infer {

struct Turns {
  std::vector<double> frequency = {};  ///< of each pair
  double length = 1;                   ///< what turned vectors are multiplied by

  /// Cosines of a place's angles, then sines, as turn_pairs takes them.
  void at(std::int64_t position, float* cos) const {
    for (std::size_t pair = 0; pair < frequency.size(); ++pair) {
      const double angle = static_cast<double>(position) * frequency[pair];
      cos[pair] = static_cast<float>(length * std::cos(angle));
      cos[frequency.size() + pair] = static_cast<float>(length * std::sin(angle));
    }
  }
};

}  // namespace infer
