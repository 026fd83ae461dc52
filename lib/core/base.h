#pragma once
// Includes what most files use, so that no file lists it: the errors of lib, fmt::format, short
// forms of common loops and parts of the standard library. Headers of narrower use (threads, files,
// time) are included where they are used, and kernels include only what they need.

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

#include "core/collect.h"
#include "core/error.h"
