// Compiled without -fassociative-math: the same row has the same bits in every kernel.

#include "infer/decode/block_kernels.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define INFER_BLOCK_KERNELS
#endif

#include "infer/decode/lanes.h"
#include "model/gguf/gguf_model.h"
#include "nn/kernels/row_math.h"
#include "nn/kernels/square.h"

namespace infer {
#ifdef INFER_BLOCK_KERNELS
namespace {

#ifdef __AVX512BW__
constexpr int kTile = 16, kTileRows = 8;  // outputs and rows whose sums are in registers together
constexpr std::int64_t kFew = 1;  // rows for which unpacking a tile takes longer than it saves
#else
constexpr int kTile = 8, kTileRows = 4;
constexpr std::int64_t kFew = 3;
#endif

using Byte = std::uint8_t;
using Shorts = std::int16_t __attribute__((vector_size(32)));
using Ints = std::int32_t __attribute__((vector_size(32)));
using Floats = float __attribute__((vector_size(32)));
// A number of each output of a tile.
using TileInts = std::int32_t __attribute__((vector_size(4 * kTile)));
using TileFloats = float __attribute__((vector_size(4 * kTile)));

constexpr std::int64_t kGroup = 32;

using nn::vec::load;
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
  static Numbers at(const void* p) { return load<Numbers>(p); }
};

// The factors of one or several groups.
template <int n> struct Factors { float scale[n], least[n]; };

inline Ints products(const Numbers& a, const Numbers& b) {
  return (Ints)_mm256_madd_epi16((__m256i)a.low, (__m256i)b.low) +
         (Ints)_mm256_madd_epi16((__m256i)a.high, (__m256i)b.high);
}
inline void add_product(Floats& sum, Floats a, Floats b) { sum = _mm256_fmadd_ps(a, b, sum); }
// Adds the products of two pairs of whole numbers to each sum.
inline void add_pairs(TileInts& sum, TileInts a, TileInts b) {
#if defined(__AVX512VNNI__)
  sum = (TileInts)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
  sum += (TileInts)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#else
  sum += (TileInts)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#endif
}
#ifdef __AVX512BW__
inline void add_product(TileFloats& sum, TileFloats a, TileFloats b) {
  sum = _mm512_fmadd_ps(a, b, sum);
}
#endif
inline float half_at(const Byte* p) { return _cvtsh_ss(load<std::uint16_t>(p)); }
// Two float16 as a scale and a least value.
inline Factors<1> halves_at(const Byte* p) {
  const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(load<std::int32_t>(p)));
  return {{both[0]}, {both[1]}};
}

// Returns the sum of each of eight vectors.
inline Ints sums_of(const Ints (&of)[8]) {
  const auto pairs = [](Ints a, Ints b) { return (Ints)_mm256_hadd_epi32((__m256i)a, (__m256i)b); };
  const Ints low = pairs(pairs(of[0], of[1]), pairs(of[2], of[3])),
             high = pairs(pairs(of[4], of[5]), pairs(of[6], of[7]));
  return (Ints)_mm256_permute2x128_si256((__m256i)low, (__m256i)high, 0x20) +
         (Ints)_mm256_permute2x128_si256((__m256i)low, (__m256i)high, 0x31);
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

// Rounds a group to whole numbers of up to `limit`. A value that is not finite makes the step not
// finite.
void round_group(const float* x, float limit, std::int16_t* numbers, float& step, float& sum) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kGroup; ++i)
    bits = std::max(bits, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  const auto most = std::bit_cast<float>(bits);
  const bool zero = most < 1e-30f;
  const float inverse = zero ? 0 : limit / most;
  step = zero ? 0 : most / limit;
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

// Weights of a tile: the bytes of its rows.
using TileRows = std::array<const Byte*, kTile>;

// Multiplies eight rows of weights by one row of inputs.
template <class Format> void dot_eight(const Byte* const* rows, const Inputs& x, float* y) {
  Floats sum{}, below{};
  const auto ahead = 8 * (x.groups / Format::kGroups * Format::kBlock) + 8192;
  for (std::int64_t g = 0, at = 0; g < x.groups; g += Format::kGroups, at += Format::kBlock) {
    Ints product[Format::kGroups][8];
    Floats scale[Format::kGroups], least[Format::kGroups];
    const auto multiply = [&](int o) {
      const Byte* const block = rows[o] + at;
      __builtin_prefetch(block + ahead);  // of the rows that follow
      const auto factors = Format::factors(block);
#pragma GCC unroll 8
      for (int part = 0; part < Format::kGroups; ++part) {
        product[part][o] =
            products(Format::numbers(block, part), Numbers::at(x.numbers + (g + part) * kGroup));
        scale[part][o] = factors.scale[part], least[part][o] = factors.least[part];
      }
    };
    if constexpr (Format::kGroups == 1 || Format::kLeast) {
#pragma GCC unroll 8
      for (int o = 0; o < 8; ++o) multiply(o);
    } else {  // Q6_K would be slower as larger code
#pragma GCC unroll 1
      for (int o = 0; o < 8; ++o) multiply(o);
    }
#pragma GCC unroll 8
    for (int part = 0; part < Format::kGroups; ++part) {
      add_product(sum, __builtin_convertvector(sums_of(product[part]), Floats),
          scale[part] * x.steps[g + part]);
      if (Format::kLeast) add_product(below, least[part], Floats{} + x.sums[g + part]);
    }
  }
  sum += below;
  std::memcpy(y, &sum, sizeof sum);
}

template <class Format> bool is_finite(const Byte* block) {
  const auto factors = Format::factors(block);
  return std::ranges::all_of(factors.scale, [](float x) { return std::isfinite(x); }) &&
         std::ranges::all_of(factors.least, [](float x) { return std::isfinite(x); });
}

// Multiplies rows of weights by one row of inputs; returns 1.
template <class Format>
int dot(const TileRows& rows, std::int64_t outputs, const Inputs& x, float* y) {
  for (std::int64_t o = 0; o < outputs; o += 8)
    dot_eight<Format>(&rows[static_cast<std::size_t>(o)], x, y + o);
  return 1;
}

// Weights of a tile, unpacked.
struct Tile {
  std::vector<TileInts> numbers;  // of each group: sixteen pairs of adjacent numbers
  std::vector<TileFloats> scale, least;
};

template <class Format> void fill(const TileRows& rows, std::int64_t groups, Tile& tile) {
  for (int first = 0; first < kTile; first += 8)
    for (std::int64_t g = 0, at = 0; g < groups; g += Format::kGroups, at += Format::kBlock) {
      const Byte* block[8];
      decltype(Format::factors(nullptr)) f[8];
      for (int o = 0; o < 8; ++o) {
        block[o] = rows[static_cast<std::size_t>(first + o)] + at;
        f[o] = Format::factors(block[o]);
      }
      for (int part = 0; part < Format::kGroups; ++part) {
        const auto to = static_cast<std::size_t>(g + part);
        Ints low[8], high[8];
#pragma GCC unroll 8
        for (int o = 0; o < 8; ++o) {
          const Numbers n = Format::numbers(block[o], part);
          low[o] = (Ints)n.low, high[o] = (Ints)n.high;
          tile.scale[to][first + o] = f[o].scale[part];
          tile.least[to][first + o] = f[o].least[part];
        }
        auto* const pairs = reinterpret_cast<std::int32_t*>(&tile.numbers[to * 16]) + first;
        nn::vec::transpose(low, pairs, kTile);
        nn::vec::transpose(high, pairs + 8 * kTile, kTile);
      }
    }
}

// Multiplies a tile by R rows of inputs; returns R.
template <int R> int multiply_tile(const Tile& tile, const Inputs& x, float* y) {
  TileFloats sum[R]{}, below[R]{};
  const auto* const in = reinterpret_cast<const Byte*>(x.numbers);
  for (std::int64_t g = 0; g < x.groups; ++g) {
    const auto* const numbers = &tile.numbers[static_cast<std::size_t>(g) * 16];
    TileInts total[R]{};
    for (int i = 0; i < 16; ++i)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        add_pairs(total[r], numbers[i],
            TileInts{} + load<std::int32_t>(in + ((r * x.groups + g) * 16 + i) * 4));
    const auto at = static_cast<std::size_t>(g);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      add_product(sum[r], __builtin_convertvector(total[r], TileFloats),
          tile.scale[at] * x.steps[r * x.groups + g]);
      add_product(below[r], tile.least[at], TileFloats{} + x.sums[r * x.groups + g]);
    }
  }
  for (int r = 0; r < R; ++r) sum[r] += below[r], std::memcpy(y + r * kTile, &sum[r], sizeof *sum);
  return R;
}

}  // namespace

struct BlockFormat {
  std::uint32_t type;
  int (*dot)(const TileRows& rows, std::int64_t outputs, const Inputs& x, float* y);
  void (*fill)(const TileRows& rows, std::int64_t groups, Tile& tile);
  bool (*is_finite)(const Byte* block);
};

const BlockFormat* block_format(std::uint32_t type) {
  const auto of = []<class Format>(std::uint32_t id, Format) {
    return BlockFormat{id, dot<Format>, fill<Format>, is_finite<Format>};
  };
  static const BlockFormat kFormats[] = {of(2, Small<false, false>{}), of(3, Small<true, false>{}),
      of(6, Small<false, true>{}), of(7, Small<true, true>{}), of(8, Q8{}), of(12, Large<false>{}),
      of(13, Large<true>{}), of(14, Q6{})};
  return core::find_by(kFormats, type, &BlockFormat::type);
}

bool has_block_kernels() { return true; }

#else
// Other processors unpack all types.
bool has_block_kernels() { return false; }

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
#ifdef INFER_BLOCK_KERNELS
    const auto* const bytes = reinterpret_cast<const Byte*>(of.bytes.data());
    for (std::size_t i = 0; i < of.bytes.size(); i += of.type->bytes)
      if (!parts_.back().format->is_finite(bytes + i))
        core::bad_data("a matrix has a value that is not finite; model verify names it");
#endif
  }
}

BlockMatrix::At BlockMatrix::at(std::int64_t index) const {
  auto part = parts_.begin();
  for (; index >= part->of.rows; ++part) index -= part->of.rows;
  const auto left = part->of.rows - index;
  if (const auto heads = part->of.rotated_heads; heads > 0)
    index = model::gguf_file_row(index, part->of.rows / heads);
  const auto* const begin =
      part->of.bytes.data() + static_cast<std::size_t>(index) * part->row_bytes;
  return {&*part, reinterpret_cast<const std::uint8_t*>(begin), left};
}

void BlockMatrix::row(std::int64_t index, float* out) const {
  const auto [part, row, left] = at(index);
  const auto& type = *part->of.type;
  for (std::size_t i = 0; i < part->row_bytes / type.bytes; ++i)
    type.unpack(row + i * type.bytes, out + i * type.elements);
}

void BlockMatrix::multiply(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
    std::int64_t end, float* y, std::int64_t ldy) const {
#ifdef INFER_BLOCK_KERNELS
  constexpr std::int64_t kMostRows = 256;  // whose inputs stay in the second-level cache
  for (; rows > kMostRows; rows -= kMostRows, x += kMostRows * ldx, y += kMostRows * ldy)
    multiply(x, kMostRows, ldx, begin, end, y, ldy);
  const std::int64_t groups = in_ / kGroup;
  // So that the sum of 32 products fits.
  const bool wide = std::ranges::any_of(parts_, [](auto& part) { return part.of.type->id == 14; });
  const float limit = wide ? 16383 : 32767;
  thread_local std::vector<Numbers> numbers;
  thread_local std::vector<float> factors;
  numbers.resize(static_cast<std::size_t>(rows * groups));
  factors.resize(static_cast<std::size_t>(2 * rows * groups));
  auto* const rounded = reinterpret_cast<std::int16_t*>(numbers.data());
  float *const steps = factors.data(), *const sums = steps + rows * groups;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t g = 0; g < groups; ++g) {
      const auto to = r * groups + g;
      round_group(x + r * ldx + g * kGroup, limit, rounded + to * kGroup, steps[to], sums[to]);
    }
  const Inputs inputs{groups, rounded, steps, sums};
  thread_local Tile tile;
  tile.numbers.resize(static_cast<std::size_t>(16 * groups));
  tile.scale.resize(static_cast<std::size_t>(groups));
  tile.least.resize(static_cast<std::size_t>(groups));
  std::int64_t outputs = 0;
  for (auto o = begin; o < end; o += outputs) {
    const auto first = at(o);
    const BlockFormat& format = *first.part->format;
    outputs = std::min({std::int64_t{kTile}, first.left, end - o});
    TileRows weights;  // filled up with the last
    for (int i = 0; i < kTile; ++i)
      weights[static_cast<std::size_t>(i)] = at(o + std::min<std::int64_t>(i, outputs - 1)).row;
    if (rows > kFew) format.fill(weights, groups, tile);
    int done = 0;
    for (std::int64_t r = 0; r < rows; r += done) {
      float found[kTileRows * kTile];
      const auto x = inputs.from(r);
      done = rows <= kFew            ? format.dot(weights, outputs, x, found)
             : rows - r >= kTileRows ? multiply_tile<kTileRows>(tile, x, found)
             : rows - r >= 2         ? multiply_tile<2>(tile, x, found)
                                     : multiply_tile<1>(tile, x, found);
      for (int i = 0; i < done; ++i)
        std::copy_n(found + i * kTile, outputs, y + (r + i) * ldy + o - begin);
    }
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
