#pragma once
// The numbers of sources that are tuned, and the points of their grid.

#include <cstddef>
#include <string>
#include <vector>

namespace infer {

/// Axes by name, each with the values that are tried. A source that has a number by an axis's name
/// scores its targets at each of the values; axes that are not named here have one value, the
/// plan's own.
struct Grid {
  struct Axis {
    std::string name;
    std::vector<double> values;  ///< at least one
  };
  std::vector<Axis> axes;

  /// The values of an axis; `own` where the grid has no such axis.
  std::vector<double> values(const std::string& name, double own) const {
    for (const auto& axis : axes)
      if (axis.name == name) return axis.values;
    return {own};
  }
  /// Points: every combination of values, the last axis fastest.
  std::size_t size() const {
    std::size_t size = 1;
    for (const auto& axis : axes) size *= axis.values.size();
    return size;
  }
  /// The places of a point's values in their axes.
  std::vector<std::size_t> at(std::size_t point) const {
    std::vector<std::size_t> places(axes.size());
    for (std::size_t i = axes.size(); i-- > 0; point /= axes[i].values.size())
      places[i] = point % axes[i].values.size();
    return places;
  }
  /// The place of an axis among all; axes.size() where there is none.
  std::size_t find(const std::string& name) const {
    std::size_t i = 0;
    while (i < axes.size() && axes[i].name != name) ++i;
    return i;
  }
};

}  // namespace infer
