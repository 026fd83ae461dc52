#include "infer/decode/decode_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#ifdef __AVX512F__
#if defined(__GNUC__) && !defined(__clang__)  // gcc 12 warns about its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#endif

#include "core/error.h"
#include "nn/kernels/row_math.h"

namespace infer {
namespace {

// Sixteen floats, with a conversion from each type of weight. AVX-512 uses intrinsics: gcc 12's
// vector extensions make int8 sixteen times slower.
#ifdef __AVX512F__
struct Lanes {
  __m512 v = _mm512_setzero_ps();
  static Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Lanes load(const std::uint16_t* p) {
    const __m512i wide =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  static Lanes load(const std::int8_t* p) {
    return {_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
  }
  void add_product(const Lanes& a, const Lanes& b) { v = _mm512_fmadd_ps(a.v, b.v, v); }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
};
#else
struct Lanes {
  nn::vec::Floats16 v = {};
  static Lanes load(const float* p) { return {*reinterpret_cast<const nn::vec::Floats16*>(p)}; }
  static Lanes load(const std::uint16_t* p) {
    using Halves = std::uint16_t __attribute__((vector_size(32), aligned(2), may_alias));
    using Wide = std::uint32_t __attribute__((vector_size(64)));
    const Wide wide = __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Wide) << 16;
    return {std::bit_cast<nn::vec::Floats16>(wide)};
  }
  static Lanes load(const std::int8_t* p) {
    using Bytes = std::int8_t __attribute__((vector_size(16), aligned(1), may_alias));
    using Wide = std::int32_t __attribute__((vector_size(64)));
    const Wide wide = __builtin_convertvector(*reinterpret_cast<const Bytes*>(p), Wide);
    return {__builtin_convertvector(wide, nn::vec::Floats16)};
  }
  void add_product(const Lanes& a, const Lanes& b) { v += a.v * b.v; }
  void store(float* p) const { std::memcpy(p, &v, sizeof v); }
};
#endif

// Returns the sums of four Lanes. The function is not inlined, so that the order of the additions
// is always the same.
[[gnu::noinline]] void sums_of(const float (&lanes)[4][PackedMatrix::kLanes], float (&sums)[4]) {
  float half[4][8];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 8; ++j) half[i][j] = lanes[i][j] + lanes[i][j + 8];
  for (int i = 0; i < 4; ++i)
    sums[i] = ((half[i][0] + half[i][4]) + (half[i][1] + half[i][5])) +
              ((half[i][2] + half[i][6]) + (half[i][3] + half[i][7]));
}

// Multiplies four rows of weights by R rows of x: sums (R, 4). It prefetches the panel `ahead`
// while it computes.
template <int R, class Weight>
inline void panel(const Weight* const (&w)[4], std::int64_t in, std::int64_t ahead, const float* x,
                  std::int64_t ldx, float (&sums)[R][4]) {
  constexpr std::int64_t kLanes = PackedMatrix::kLanes;
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Weight));
  Lanes sum[4][R];
  const auto step = [&](std::int64_t k) {
    Lanes weight[4];
    for (int i = 0; i < 4; ++i) weight[i] = Lanes::load(w[i] + k);
    for (int r = 0; r < R; ++r) {
      const Lanes value = Lanes::load(x + r * ldx + k);
      for (int i = 0; i < 4; ++i) sum[i][r].add_product(weight[i], value);
    }
  };
  std::int64_t k = 0;
  for (; k + kLine <= in; k += kLine) {
    for (int i = 0; i < 4; ++i) __builtin_prefetch(w[i] + ahead + k, 0, 3);
    for (std::int64_t j = 0; j < kLine; j += kLanes) step(k + j);
  }
  for (; k < in; k += kLanes) step(k);
  for (int r = 0; r < R; ++r) {
    float lanes[4][kLanes];
    for (int i = 0; i < 4; ++i) sum[i][r].store(lanes[i]);
    sums_of(lanes, sums[r]);
  }
}

template <int R, class Weight, class Put>
inline void rows_of_panel(const Weight* const (&w)[4], std::int64_t in, std::int64_t ahead,
                          const float* x, std::int64_t ldx, std::int64_t first, const Put& put) {
  float sums[R][4];
  panel<R>(w, in, ahead, x + first * ldx, ldx, sums);
  for (int i = 0; i < 4; ++i)
    for (int r = 0; r < R; ++r) put(i, first + r, sums[r][i]);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);  // round to even
}

float to_float(float x) { return x; }
float to_float(std::uint16_t bfloat16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat16) << 16);
}

}  // namespace

double exp_weights(const float* x, std::int64_t n, float max, float scale, float* out) {
  double total = 0;
  constexpr std::int64_t kBlock = 1024;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, n);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = nn::vec::exp((x[i] - max) * scale);
      sum += out[i];
    }
    total += static_cast<double>(sum);
  }
  return total;
}

float max_of(const float* x, std::int64_t n) {
  float max = x[0];
  int nan = 0;
#pragma omp simd reduction(max : max) reduction(| : nan)
  for (std::int64_t i = 0; i < n; ++i) {
    max = x[i] > max ? x[i] : max;
    nan |= x[i] != x[i];
  }
  return nan != 0 ? std::nanf("") : max;
}

void softmax(float* x, std::int64_t n) {
  const auto share = static_cast<float>(1 / exp_weights(x, n, max_of(x, n), 1, x));
  nn::vec::scale(x, n, share);
}

float log_softmax(float* x, std::int64_t n) {
  constexpr std::int64_t kBlock = 1024;
  const float max = max_of(x, n);
  float scratch[kBlock];
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock)
    total += exp_weights(x + begin, std::min(kBlock, n - begin), max, 1.0f, scratch);
  const float log_z = max + static_cast<float>(std::log(total));
  for (std::int64_t i = 0; i < n; ++i) x[i] -= log_z;
  return log_z;
}

void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n,
                float epsilon, float* y) {
  nn::vec::layer_norm(x, weight, nullptr, n, epsilon, y);
  if (bias != nullptr) add(bias, n, y);
}

void rms_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float epsilon,
              float* y) {
  nn::vec::rms_norm(x, weight, n, epsilon, y);
  if (bias != nullptr) add(bias, n, y);
}

void silu(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = nn::vec::silu(x[i]);
}

void times(const float* x, std::int64_t n, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] *= x[i];
}

void gelu(float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = nn::vec::gelu(x[i]);
}

void gelu_exact(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678118654752f));
}

void soft_cap(float* x, std::int64_t n, float cap) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x[i] = cap * nn::vec::tanh(x[i] / cap);
}

void relu(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}

void turn_pairs(const float* cos, const float* sin, std::int64_t pairs, float* x) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float first = x[i], second = x[pairs + i];
    x[i] = first * cos[i] - second * sin[i];
    x[pairs + i] = second * cos[i] + first * sin[i];
  }
}

void add(const float* x, std::int64_t n, float* y) { nn::vec::add(x, n, y); }

void attention_scores(const float* q, const float* k, std::int64_t stride, std::int64_t n,
                      std::int64_t width, float scale, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = nn::vec::dot(q, k + i * stride, width) * scale;
  }
}

void add_weighted(const float* weights, const float* v, std::int64_t stride, std::int64_t n,
                  std::int64_t width, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float* const value = v + i * stride;
    const float weight = weights[i];
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) out[j] += weight * value[j];
  }
}

Precision parse_precision(const std::string& name) {
  if (name == "float32") return Precision::float32;
  if (name == "bfloat16") return Precision::bfloat16;
  if (name == "int8") return Precision::int8;
  core::fail(core::Code::usage, "--dtype: takes float32, bfloat16 or int8, not '{}'", name);
}

PackedMatrix::PackedMatrix(std::int64_t out, std::int64_t in, Precision precision)
    : out_(out), in_(in), stride_((in + kLanes - 1) / kLanes * kLanes), precision_(precision) {}

PackedMatrix::PackedMatrix(const float* weight, std::int64_t out, std::int64_t in,
                           Precision precision)
    : PackedMatrix(out, in, precision) {
  if (precision_ == Precision::float32 && stride_ == in_) {
    borrowed_floats_ = weight;
  } else {
    convert(weight);
  }
}

PackedMatrix::PackedMatrix(const std::uint16_t* weight, std::int64_t out, std::int64_t in,
                           Precision precision)
    : PackedMatrix(out, in, precision) {
  if (precision_ == Precision::bfloat16 && stride_ == in_) {
    borrowed_halves_ = weight;
  } else {
    convert(weight);
  }
}

template <class Weight>
void PackedMatrix::convert(const Weight* weight) {
  const auto fill = [&](auto& to, const auto& of) {
    to.assign(static_cast<std::size_t>(out_ * stride_), {});
#pragma omp parallel for
    for (std::int64_t o = 0; o < out_; ++o)
      for (std::int64_t i = 0; i < in_; ++i)
        to[static_cast<std::size_t>(o * stride_ + i)] = of(o, to_float(weight[o * in_ + i]));
  };
  switch (precision_) {
    case Precision::float32:
      fill(floats_, [](std::int64_t, float w) { return w; });
      break;
    case Precision::bfloat16:
      fill(halves_, [](std::int64_t, float w) { return to_bfloat16(w); });
      break;
    case Precision::int8:
      scales_.resize(static_cast<std::size_t>(out_));
      for (std::int64_t o = 0; o < out_; ++o) {
        float largest = 0;
        for (std::int64_t i = 0; i < in_; ++i)
          largest = std::max(largest, std::abs(to_float(weight[o * in_ + i])));
        scales_[static_cast<std::size_t>(o)] = largest / 127;
      }
      fill(bytes_, [&](std::int64_t o, float w) {
        const float scale = scales_[static_cast<std::size_t>(o)];
        return static_cast<std::int8_t>(scale > 0 ? std::nearbyint(w / scale) : 0);
      });
      break;
  }
}

template <class Weight>
void PackedMatrix::multiply(const Weight* weights, const float* x, std::int64_t rows,
                            std::int64_t ldx, std::int64_t begin, std::int64_t end, float* y,
                            std::int64_t ldy) const {
  for (std::int64_t p = begin; p < end; ++p) {
    const Weight* w[4];
    for (std::int64_t i = 0; i < kPanel; ++i)  // outputs past the end are computed and dropped
      w[i] = weights + std::min(kPanel * p + i, out_ - 1) * stride_;
    const std::int64_t ahead = kPanel * (p + 2) <= out_ ? kPanel * stride_ : 0;
    const auto put = [&](std::int64_t i, std::int64_t r, float sum) {
      const std::int64_t o = kPanel * p + i;
      if (o >= out_) return;
      y[r * ldy + o] =
          precision_ == Precision::int8 ? sum * scales_[static_cast<std::size_t>(o)] : sum;
    };
    std::int64_t r = 0;
    for (; r + 6 <= rows; r += 6) rows_of_panel<6>(w, stride_, ahead, x, ldx, r, put);
    switch (rows - r) {
      case 1:
        rows_of_panel<1>(w, stride_, ahead, x, ldx, r, put);
        break;
      case 2:
        rows_of_panel<2>(w, stride_, ahead, x, ldx, r, put);
        break;
      case 3:
        rows_of_panel<3>(w, stride_, ahead, x, ldx, r, put);
        break;
      case 4:
        rows_of_panel<4>(w, stride_, ahead, x, ldx, r, put);
        break;
      case 5:
        rows_of_panel<5>(w, stride_, ahead, x, ldx, r, put);
        break;
      default:
        break;
    }
  }
}

void PackedMatrix::multiply(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
                            std::int64_t end, float* y, std::int64_t ldy) const {
  switch (precision_) {
    case Precision::float32:
      multiply(borrowed_floats_ != nullptr ? borrowed_floats_ : floats_.data(), x, rows, ldx, begin,
               end, y, ldy);
      break;
    case Precision::bfloat16:
      multiply(borrowed_halves_ != nullptr ? borrowed_halves_ : halves_.data(), x, rows, ldx, begin,
               end, y, ldy);
      break;
    case Precision::int8:
      multiply(bytes_.data(), x, rows, ldx, begin, end, y, ldy);
      break;
  }
}

std::int64_t PackedMatrix::bytes() const {
  const std::int64_t size = precision_ == Precision::float32    ? 4
                            : precision_ == Precision::bfloat16 ? 2
                                                                : 1;
  return out_ * stride_ * size + static_cast<std::int64_t>(scales_.size()) * 4;
}

}  // namespace infer
