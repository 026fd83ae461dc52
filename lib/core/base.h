#pragma once
// Includes what most files use, so that no file lists it: the errors of lib, fmt::format and parts
// of the standard library. Headers of narrower use (threads, files, time) are included where they
// are used, and kernels include only what they need. Sets a variable for the duration of a scope.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/error.h"

namespace core {

/// While the object exists, `variable` has `value`; its destructor restores the previous value.
template <class T> class [[nodiscard]] ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(before_); }
  ScopedValue(ScopedValue&&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace core
