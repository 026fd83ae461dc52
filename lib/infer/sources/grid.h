#pragma once
// Tuned parameters of the sources and the points of their grid.

#include "core/base.h"

namespace infer {

/// Named axes, each with the values to try. A source that has a parameter with the name of an axis
/// scores its targets at each value. A parameter without an axis keeps the plan's value.
struct Grid {
  struct Axis {
    std::string name;
    std::vector<double> values;  ///< at least one
  };
  std::vector<Axis> axes;

  /// Returns the values of an axis; {own} if the grid has no such axis.
  std::vector<double> values(const std::string& name, double own) const {
    const auto i = find(name);
    return i < axes.size() ? axes[i].values : std::vector{own};
  }
  /// Returns the number of points: every combination of values, the last axis fastest.
  std::size_t size() const {
    std::size_t size = 1;
    for (const auto& axis : axes) size *= axis.values.size();
    return size;
  }
  /// Returns the index of a point's value in each axis.
  std::vector<std::size_t> at(std::size_t point) const {
    std::vector<std::size_t> places(axes.size());
    for (std::size_t i = axes.size(); i-- > 0; point /= axes[i].values.size())
      places[i] = point % axes[i].values.size();
    return places;
  }
  /// Returns the index of an axis; axes.size() if absent.
  std::size_t find(const std::string& name) const {
    std::size_t i = 0;
    while (i < axes.size() && axes[i].name != name) ++i;
    return i;
  }
};

}  // namespace infer
