#pragma once
// The streams of a run's seed, so that no two uses draw the same numbers. A use that counts (an
// epoch, a micro-batch) adds its count.

#include <cstdint>

namespace train {

inline constexpr std::uint64_t kEpochStream = std::uint64_t{1} << 32;    ///< + epoch
inline constexpr std::uint64_t kDropoutStream = std::uint64_t{2} << 60;  ///< + micro-batch
inline constexpr std::uint64_t kCoinStream = std::uint64_t{3} << 60;     ///< + micro-batch
/// Lengths of columns, or ties in the order of pairs: no run has both.
inline constexpr std::uint64_t kOrderStream = std::uint64_t{4} << 60;

/// Of a run of vectors, which has none of the above.
inline constexpr std::uint64_t kFirstMapsStream = 0;
inline constexpr std::uint64_t kWindowsStream = 1;  ///< + micro-batch

}  // namespace train
