#pragma once
// The tiles of AMX: eight, each of sixteen lines of 64 bytes.

#include <cstdint>
#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace nn {

/// The shapes of all tiles, for _tile_loadconfig().
constexpr struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t lines[16] = {16, 16, 16, 16, 16, 16, 16, 16};
} kTileShapes;

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

}  // namespace nn
