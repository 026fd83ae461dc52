// Compiled without -fassociative-math: the same row has the same bits in every kernel.

#include "infer/decode/block_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define INFER_BLOCK_KERNELS
#if defined(__GNUC__) && !defined(__clang__)  // gcc 12 warns about its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

#include "nn/kernels/row_math.h"

namespace infer {
#ifdef INFER_BLOCK_KERNELS
namespace {

using Byte = std::uint8_t;
// A pointer to any byte may be read as Shorts.
using Shorts = std::int16_t __attribute__((vector_size(32), aligned(1), may_alias));
using Ints = std::int32_t __attribute__((vector_size(32)));
using Floats = float __attribute__((vector_size(32)));

constexpr std::int64_t kGroup = 32;

template <class Value> inline Value load(const Byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
// Sixteen bytes with and without a sign.
inline Shorts signed_at(const Byte* p) {
  return (Shorts)_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Shorts shorts_at(const Byte* p) {
  return (Shorts)_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// The numbers of a group.
struct Numbers {
  Shorts low, high;
  static Numbers at(const void* p) {
    const auto* const both = static_cast<const Shorts*>(p);
    return {both[0], both[1]};
  }
};

// The factors of one or several groups.
template <int n> struct Factors { float scale[n], least[n]; };

inline Ints products(const Numbers& a, const Numbers& b) {
  return (Ints)_mm256_madd_epi16((__m256i)a.low, (__m256i)b.low) +
         (Ints)_mm256_madd_epi16((__m256i)a.high, (__m256i)b.high);
}
inline void add_product(Floats& sum, Floats a, Floats b) { sum = _mm256_fmadd_ps(a, b, sum); }
inline float half_at(const Byte* p) { return _cvtsh_ss(load<std::uint16_t>(p)); }
// Two float16 as a scale and a least value.
inline Factors<1> halves_at(const Byte* p) {
  const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(load<std::int32_t>(p)));
  return {{both[0]}, {both[1]}};
}

inline Floats splat(float x) { return Floats{x, x, x, x, x, x, x, x}; }

inline float sum_of(Floats v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return two[0] + two[1];
}

// The formats. factors() and numbers() read a block, numbers() one of its kGroups groups.

// Sixteen bits as 0 or 16.
inline Shorts fifth_bits(const Byte* p) {
  const Shorts bit = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768};
  return ((load<std::int16_t>(p) & bit) == bit) & 16;
}

// Q4_0, Q4_1, Q5_0, Q5_1: d, least value (Q4_1, Q5_1), fifth bits (Q5_0, Q5_1), numbers. Without a
// least value the middle of the numbers is zero.
template <bool has_least, bool fifth> struct Small {
  static constexpr bool kLeast = has_least;
  static constexpr int kGroups = 1, kHead = has_least ? 4 : 2, kBits = fifth ? 4 : 0,
                       kBlock = kHead + kBits + 16;
  static constexpr std::int16_t kZero = has_least ? 0 : fifth ? 16 : 8;
  static Factors<1> factors(const Byte* block) {
    if constexpr (has_least) return halves_at(block);
    return {{half_at(block)}, {0}};
  }
  static Numbers numbers(const Byte* block, int) {
    const Shorts packed = shorts_at(block + kHead + kBits);
    Shorts low = packed & 15, high = packed >> 4;
    if (fifth) low |= fifth_bits(block + kHead), high |= fifth_bits(block + kHead + 2);
    return {low - kZero, high - kZero};
  }
};

struct Q8 {
  static constexpr bool kLeast = false;
  static constexpr int kGroups = 1, kBlock = 34;
  static Factors<1> factors(const Byte* block) { return {{half_at(block)}, {0}}; }
  static Numbers numbers(const Byte* block, int) {
    return {signed_at(block + 2), signed_at(block + 18)};
  }
};

// Q4_K, Q5_K: d, dmin, a scale and a least value of 6 bits for each group, fifth bits (Q5_K only),
// numbers.
template <bool fifth> struct Large {
  static constexpr bool kLeast = true;
  static constexpr int kGroups = 8, kHead = fifth ? 48 : 16, kBlock = kHead + 128;
  static Factors<8> factors(const Byte* block) {
    // Six bits of groups 0 to 3; the upper two bits beside them belong to groups 4 to 7.
    const auto scales = load<std::uint32_t>(block + 4), leasts = load<std::uint32_t>(block + 8),
               others = load<std::uint32_t>(block + 12);
    constexpr std::uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTop = 0x30303030;
    const std::uint32_t words[] = {scales & kSix, (others & kFour) | (scales >> 2 & kTop),
        leasts & kSix, (others >> 4 & kFour) | (leasts >> 2 & kTop)};
    const auto numbers = std::bit_cast<std::array<Byte, 16>>(words);
    const auto d = halves_at(block);
    Factors<8> to;
    for (std::size_t i = 0; i < 8; ++i) {
      to.scale[i] = d.scale[0] * static_cast<float>(numbers[i]);
      to.least[i] = -d.least[0] * static_cast<float>(numbers[8 + i]);
    }
    return to;
  }
  static Shorts half(const Byte* block, int part, int from) {
    Shorts n = shorts_at(block + kHead + part / 2 * 32 + from) >> part % 2 * 4 & 15;
    if (fifth) n |= (shorts_at(block + 16 + from) >> part & 1) << 4;
    return n;
  }
  static Numbers numbers(const Byte* block, int part) {
    return {half(block, part, 0), half(block, part, 16)};
  }
};

// Q6_K: 128 bytes of low bits, 64 bytes of two high bits, a scale of 8 bits for each half of a
// group, d. The numbers are multiplied by these scales.
struct Q6 {
  static constexpr bool kLeast = false;
  static constexpr int kGroups = 8, kBlock = 210;
  static Factors<8> factors(const Byte* block) {
    const float d = half_at(block + 208);
    return {{d, d, d, d, d, d, d, d}, {}};
  }
  static Shorts half(const Byte* block, int part, int from) {
    const Shorts low = shorts_at(block + part / 4 * 64 + part % 2 * 32 + from) >> part % 4 / 2 * 4;
    const Shorts high = shorts_at(block + 128 + part / 4 * 32 + from) >> part % 4 * 2;
    return (((low & 15) | (high & 3) << 4) - 32) *
           static_cast<std::int8_t>(block[192 + 2 * part + from / 16]);
  }
  static Numbers numbers(const Byte* block, int part) {
    return {half(block, part, 0), half(block, part, 16)};
  }
};

// Inputs, rounded.
struct Inputs {
  std::int64_t groups;
  const std::int16_t* numbers;
  const float *steps, *sums;  // of each group; sums: step sum_i(q_i)
  Inputs from(std::int64_t row) const {
    return {groups, numbers + row * groups * kGroup, steps + row * groups, sums + row * groups};
  }
};

// Rounds a group. A value that is not finite makes the step not finite.
void round_group(const float* x, std::int16_t* numbers, float& step, float& sum) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kGroup; ++i)
    bits = std::max(bits, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  const auto most = std::bit_cast<float>(bits);
  const bool zero = most < 1e-30f;
  const float inverse = zero ? 0 : 32767 / most;
  step = zero ? 0 : most / 32767;
  std::int32_t total = 0;
  for (int i = 0; i < kGroup; ++i) {
    // In a float of this size the last bit is 1.
    constexpr float kOnes = 12582912;
    const auto n =
        std::bit_cast<std::int32_t>(x[i] * inverse + kOnes) - std::bit_cast<std::int32_t>(kOnes);
    numbers[i] = static_cast<std::int16_t>(n);
    total += numbers[i];
  }
  sum = step * static_cast<float>(total);
}

// Multiplies a row of weights by R rows of inputs.
template <class Format, int R>
inline void dot(const Byte* row, const Inputs& x, float* y, std::int64_t ldy) {
  Floats sum[R];
  float below[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sum[r] = splat(0), below[r] = 0;
  for (std::int64_t g = 0; g < x.groups; g += Format::kGroups, row += Format::kBlock) {
    __builtin_prefetch(row + 2048);  // of the rows that follow
    const auto factors = Format::factors(row);
#pragma GCC unroll 8
    for (int part = 0; part < Format::kGroups; ++part) {
      const Numbers n = Format::numbers(row, part);
      const Floats scale = splat(factors.scale[part]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const auto at = r * x.groups + g + part;
        const Ints exact = products(n, Numbers::at(x.numbers + at * kGroup));
        add_product(sum[r], __builtin_convertvector(exact, Floats), scale * splat(x.steps[at]));
        if (Format::kLeast) below[r] = __builtin_fmaf(factors.least[part], x.sums[at], below[r]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) y[r * ldy] = sum_of(sum[r]) + below[r];
}

// Multiplies a row of weights by any number of rows of inputs.
template <class Format>
void multiply_rows(
    const Byte* row, const Inputs& all, std::int64_t rows, float* y, std::int64_t ldy) {
  for (std::int64_t r = 0; r < rows; r += 4, y += 4 * ldy) {
    const Inputs x = all.from(r);
    if (rows - r == 1) dot<Format, 1>(row, x, y, ldy);
    if (rows - r == 2) dot<Format, 2>(row, x, y, ldy);
    if (rows - r == 3) dot<Format, 3>(row, x, y, ldy);
    if (rows - r >= 4) dot<Format, 4>(row, x, y, ldy);
  }
}

}  // namespace

struct BlockFormat {
  std::uint32_t type;
  void (*multiply)(const Byte* row, const Inputs& x, std::int64_t rows, float* y, std::int64_t ldy);
};

const BlockFormat* block_format(std::uint32_t type) {
  static constexpr BlockFormat kFormats[] = {{2, multiply_rows<Small<false, false>>},
      {3, multiply_rows<Small<true, false>>}, {6, multiply_rows<Small<false, true>>},
      {7, multiply_rows<Small<true, true>>}, {8, multiply_rows<Q8>},
      {12, multiply_rows<Large<false>>}, {13, multiply_rows<Large<true>>}, {14, multiply_rows<Q6>}};
  for (const auto& format : kFormats)
    if (format.type == type) return &format;
  return nullptr;
}

#else
// Other processors unpack all types.
struct BlockFormat {};
const BlockFormat* block_format(std::uint32_t) {
  static constexpr BlockFormat kAny;
  return &kAny;
}
#endif

BlockMatrix::BlockMatrix(const std::vector<model::GgufRows>& parts, std::int64_t in) : in_(in) {
  for (const auto& of : parts) {
    parts_.push_back({of, block_format(of.type->id),
        static_cast<std::size_t>(in) / of.type->elements * of.type->bytes});
    out_ += of.rows;
  }
}

BlockMatrix::At BlockMatrix::at(std::int64_t index) const {
  auto part = parts_.begin();
  for (; index >= part->of.rows; ++part) index -= part->of.rows;
  if (const auto heads = part->of.rotated_heads; heads > 0) {  // the inverse of gguf_family_row()
    const auto width = part->of.rows / heads, within = index % width, half = width / 2;
    index += (within < half ? 2 * within : 2 * (within - half) + 1) - within;
  }
  const auto* const begin =
      part->of.bytes.data() + static_cast<std::size_t>(index) * part->row_bytes;
  return {&*part, reinterpret_cast<const std::uint8_t*>(begin)};
}

void BlockMatrix::row(std::int64_t index, float* out) const {
  const auto [part, row] = at(index);
  const auto& type = *part->of.type;
  for (std::size_t i = 0; i < part->row_bytes / type.bytes; ++i)
    type.unpack(row + i * type.bytes, out + i * type.elements);
}

void BlockMatrix::multiply(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
    std::int64_t end, float* y, std::int64_t ldy) const {
#ifdef INFER_BLOCK_KERNELS
  const std::int64_t groups = in_ / kGroup;
  thread_local std::vector<Numbers> numbers;
  thread_local std::vector<float> factors;
  numbers.resize(static_cast<std::size_t>(rows * groups));
  factors.resize(static_cast<std::size_t>(2 * rows * groups));
  auto* const rounded = reinterpret_cast<std::int16_t*>(numbers.data());
  float *const steps = factors.data(), *const sums = steps + rows * groups;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t g = 0; g < groups; ++g) {
      const auto to = r * groups + g;
      round_group(x + r * ldx + g * kGroup, rounded + to * kGroup, steps[to], sums[to]);
    }
  const Inputs inputs{groups, rounded, steps, sums};
  for (auto o = begin; o < end; ++o) {
    const auto [part, row] = at(o);
    part->format->multiply(row, inputs, rows, y + (o - begin), ldy);
  }
#else
  thread_local std::vector<float> weights;
  weights.resize(static_cast<std::size_t>(in_));
  for (auto o = begin; o < end; ++o) {
    row(o, weights.data());
    for (std::int64_t r = 0; r < rows; ++r)
      y[r * ldy + o - begin] = nn::vec::dot(weights.data(), x + r * ldx, in_);
  }
#endif
}

}  // namespace infer
