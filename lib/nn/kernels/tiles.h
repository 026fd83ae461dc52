#pragma once
// The tiles of AMX: eight, each of sixteen lines of 64 bytes.

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace nn {

/// Returns whether processor and kernel have tiles with products in bfloat16; asks for them once.
inline bool has_tile_products() {
#if defined(__x86_64__)
  constexpr int kAsk = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  static const bool has =
      __builtin_cpu_supports("avx512bf16") && syscall(SYS_arch_prctl, kAsk, kTileData) == 0;
  return has;
#else
  return false;
#endif
}

#if defined(__x86_64__)
/// The shapes of all tiles: 16 lines of 64 bytes.
constexpr struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
} kTileShapes;

/// Begins and ends the use of tiles on this thread. Only if has_tile_products().
[[gnu::target("amx-tile")]] inline void begin_tiles() { _tile_loadconfig(&kTileShapes); }
[[gnu::target("amx-tile")]] inline void end_tiles() { _tile_release(); }

/// Two columns or rows of tiles in memory; distances are in bytes.
struct TilePairs {
  const void* at;
  std::int64_t other;  ///< to the second tile
  std::int64_t line;   ///< between lines of a tile
  std::int64_t next;   ///< to the next two
};

/// Computes the sum (32, 32) of n products of two tiles of `a` by two of `b`. A line of `a` has
/// sixteen pairs of bfloat16 of a row, a line of `b` a pair of each of sixteen columns.
[[gnu::target("amx-tile,amx-bf16")]] inline void add_tiles(
    const TilePairs& a, const TilePairs& b, std::int64_t n, float* sum) {
  constexpr std::int64_t kSide = 16, kRow = 2 * kSide, kLine = kRow * sizeof(float);
  const auto *x = static_cast<const char*>(a.at), *y = static_cast<const char*>(b.at);
  asm("" ::: "memory");  // gcc 12 does not know that _tile_loadd reads memory
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t i = 0; i < n; ++i, x += a.next, y += b.next) {
    _tile_loadd(4, x, a.line);
    _tile_loadd(5, x + a.other, a.line);
    _tile_loadd(6, y, b.line);
    _tile_loadd(7, y + b.other, b.line);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sum, kLine);
  _tile_stored(1, sum + kSide, kLine);
  _tile_stored(2, sum + kSide * kRow, kLine);
  _tile_stored(3, sum + kSide * kRow + kSide, kLine);
}
#endif

}  // namespace nn
