// Products in bfloat16 on tiles, compared with a plain loop in the order that their header names.
#include "infer/decode/decode_kernels.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "core/rng.h"

namespace {

float value_of(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}
float value_of(std::int8_t byte) { return byte; }

float rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x), lower = bits & 0xffff, upper = bits >> 16;
  const bool up = lower > 0x8000 || (lower == 0x8000 && upper % 2 == 1);
  return std::bit_cast<float>((upper + (up ? 1 : 0)) << 16);
}

template <class Weight> float plain(const float* x, const Weight* w, std::int64_t in) {
  float four[4] = {};
  for (std::int64_t begin = 0; begin < in; begin += 512)
    for (std::int64_t lane = 0; lane < 16; ++lane) {
      float even = 0, odd = 0;
      for (std::int64_t k = begin + lane; k < std::min(in, begin + 512); k += 32)
        even = std::fma(rounded(x[k]), value_of(w[k]), even);
      for (std::int64_t k = begin + lane + 16; k < std::min(in, begin + 512); k += 32)
        odd = std::fma(rounded(x[k]), value_of(w[k]), odd);
      four[lane % 4] += even + odd;
    }
  return (four[0] + four[2]) + (four[1] + four[3]);
}

std::vector<float> random_floats(std::int64_t n, core::Rng& rng, float scale = 1) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (auto& value : x) value = scale * static_cast<float>(rng.uniform() - 0.5);
  return x;
}

template <class Weight> std::vector<Weight> random_weights(std::int64_t n, core::Rng& rng) {
  std::vector<Weight> w(static_cast<std::size_t>(n));
  for (auto& value : w) {
    if constexpr (sizeof(Weight) == 1) value = static_cast<Weight>(rng.below(255)) - 127;
    else value = static_cast<Weight>(0x3c00 + rng.below(512) + (rng.below(2) << 15));
  }
  return w;
}

template <class Weight> void check_products() {
  core::Rng rng(3);
  for (const std::int64_t in : {16, 32, 48, 512, 528, 1'040})
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 16, 17, 32, 70, 530}) {
      DOCTEST_CAPTURE(in);
      DOCTEST_CAPTURE(rows);
      constexpr std::int64_t kOut = 71, kBegin = 4, kEnd = 70;
      const std::int64_t ldx = in + 3, ldy = kOut + 2;
      const auto w = random_weights<Weight>(kOut * in, rng);
      const auto x = random_floats(rows * ldx, rng), scales = random_floats(kOut, rng);
      for (const float* const scale : {scales.data(), static_cast<const float*>(nullptr)}) {
        std::vector<float> y(static_cast<std::size_t>(rows * ldy), 7);
        infer::multiply_tiles(infer::TileWeights<Weight>{w.data(), kOut, in, scale}, x.data(), rows,
            ldx, kBegin, kEnd, y.data(), ldy);
        std::int64_t wrong = 0;
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t o = 0; o < ldy; ++o) {
            const bool made = o >= kBegin && o < kEnd;
            const float want = made ? plain(x.data() + r * ldx, w.data() + o * in, in) *
                                          (scale == nullptr ? 1 : scale[o])
                                    : 7;
            wrong += y[r * ldy + o] != want;
          }
        DOCTEST_CHECK(wrong == 0);
      }
    }
}

}  // namespace

DOCTEST_TEST_CASE("products on tiles have the bits of a plain loop, of few rows and of many") {
  if (!infer::has_tile_products()) {
    DOCTEST_MESSAGE("SKIP: this processor has no products on tiles (AMX)");
    return;
  }
  check_products<std::uint16_t>();
  check_products<std::int8_t>();
}

DOCTEST_TEST_CASE("products below the smallest normal number are zero, of few rows and of many") {
  if (!infer::has_tile_products()) {
    DOCTEST_MESSAGE("SKIP: this processor has no products on tiles (AMX)");
    return;
  }
  core::Rng rng(4);
  constexpr std::int64_t kIn = 64, kOut = 8, kRows = 6;
  const auto w = random_weights<std::uint16_t>(kOut * kIn, rng);
  const auto x = random_floats(kRows * kIn, rng, 1e-36F);
  const infer::TileWeights<std::uint16_t> weights{w.data(), kOut, kIn, nullptr};
  std::vector<float> many(kRows * kOut), few(kRows * kOut);
  infer::multiply_tiles(weights, x.data(), kRows, kIn, 0, kOut, many.data(), kOut);
  for (std::int64_t r = 0; r < kRows; ++r)
    infer::multiply_tiles(
        weights, x.data() + r * kIn, 1, kIn, 0, kOut, few.data() + r * kOut, kOut);
  DOCTEST_CHECK(many == few);
}

DOCTEST_TEST_CASE(
    "rounded products of packed weights, on tiles and without, of few rows and of many") {
  constexpr std::int64_t kIn = 112, kOut = 45, kRows = 21;
  core::Rng rng(5);
  const auto w = random_floats(kOut * kIn, rng), x = random_floats(kRows * kIn, rng);
  for (const auto precision : {infer::Precision::bfloat16, infer::Precision::int8}) {
    const infer::PackedMatrix matrix(w.data(), kOut, kIn, precision);
    for (const bool tiles : {false, infer::has_tile_products()}) {
      DOCTEST_CAPTURE(tiles);
      const auto product = [&](std::int64_t first, std::int64_t rows) {
        std::vector<float> y(static_cast<std::size_t>(rows * kOut));
        matrix.multiply_halves(
            x.data() + first * kIn, rows, kIn, 0, matrix.panels(), y.data(), kOut, tiles);
        return y;
      };
      const auto all = product(0, kRows);
      double most = 0;
      for (std::int64_t r = 0; r < kRows; ++r) {
        const auto alone = product(r, 1);
        for (std::int64_t o = 0; o < kOut; ++o) {
          std::vector<float> row(kIn);
          matrix.row(o, row.data());
          double want = 0;
          for (std::int64_t k = 0; k < kIn; ++k) want += double{x[r * kIn + k]} * row[k];
          most = std::max(most, std::abs(all[r * kOut + o] - want));
          DOCTEST_REQUIRE(alone[o] == all[r * kOut + o]);
        }
      }
      // 112 products below 1/4, of inputs with relative errors of at most 2^-9.
      DOCTEST_CHECK(most < 0.02);
    }
  }
}
