#pragma once
// Random streams of a run's seed, so that different uses draw independent numbers. A use with an
// index (an epoch, a micro-batch) adds the index to its stream.

#include <cstdint>

namespace train {

inline constexpr std::uint64_t kEpochStream = std::uint64_t{1} << 32;    ///< + epoch
inline constexpr std::uint64_t kDropoutStream = std::uint64_t{2} << 60;  ///< + micro-batch
inline constexpr std::uint64_t kCoinStream = std::uint64_t{3} << 60;     ///< + micro-batch
/// Lengths of columns, or ties in the order of pairs: no run uses both.
inline constexpr std::uint64_t kOrderStream = std::uint64_t{4} << 60;

/// First maps of a run on vectors, which uses none of the streams above.
inline constexpr std::uint64_t kFirstMapsStream = 0;
inline constexpr std::uint64_t kWindowsStream = 1;  ///< + micro-batch

}  // namespace train
