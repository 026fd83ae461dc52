#include "infer/decode/decode_kernels.h"

#include <mutex>

#include "core/mapped_file.h"
#include "infer/decode/block_kernels.h"
#include "infer/decode/lanes.h"
#include "nn/kernels/row_math.h"
#include "nn/kernels/square.h"

namespace infer {
namespace {

// A tile of a product of many rows has the sums of kTileRows rows and kTileColumns outputs, which
// are in as many registers as Parts. Products of up to kFewRows rows do not transpose the weights.
#ifdef INFER_HALF_LANES
using Part = HalfLanes;
using PartFloats = nn::vec::Floats8;
constexpr int kVectors = 2, kFewRows = 2;
#else
using Part = Lanes;
using PartFloats = nn::vec::Floats16;
constexpr int kVectors = 4, kFewRows = 6;
#endif
constexpr int kWidth = sizeof(Part) / sizeof(float), kTileRows = 6,
              kTileColumns = kVectors * kWidth;

// The lanes of the four sums of a row of x.
using SumsOfRow = float[4][PackedMatrix::kLanes];

// Returns a + b. The compiler may not change the order of such additions.
template <class Vector> Vector sum_of(Vector a, Vector b) {
  Vector sum = a + b;
  asm("" : "+x"(sum));
  return sum;
}

// Returns the sum of lane(0) to lane(15), in one order for all kernels.
template <class Lane> auto sum_of_lanes(const Lane& lane) {
  const auto quarter = [&](int i) {
    return sum_of(sum_of(lane(i), lane(i + 8)), sum_of(lane(i + 4), lane(i + 12)));
  };
  return sum_of(sum_of(quarter(0), quarter(1)), sum_of(quarter(2), quarter(3)));
}

// Returns the sums of four Lanes, in the order of sum_of_lanes().
void sums_of(const SumsOfRow& lanes, float (&sums)[4]) {
  using Four = float __attribute__((vector_size(16)));
  Four quarter[4];
  for (int i = 0; i < 4; ++i) {
    const auto of = [&](int part) { return nn::vec::load<Four>(lanes[i] + 4 * part); };
    quarter[i] = sum_of(sum_of(of(0), of(2)), sum_of(of(1), of(3)));
  }
  const auto pairs = [](Four a, Four b) {  // a0 + a1, a2 + a3, b0 + b1, b2 + b3
    return sum_of(
        __builtin_shufflevector(a, b, 0, 2, 4, 6), __builtin_shufflevector(a, b, 1, 3, 5, 7));
  };
  const Four all = pairs(pairs(quarter[0], quarter[1]), pairs(quarter[2], quarter[3]));
  std::memcpy(sums, &all, sizeof all);
}

template <class Weight>
constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(Weight));

// Prefetches four lines of the panel `next`, whose four rows are contiguous, while column k of
// the panel before it is multiplied. Memory is fastest when its lines are fetched in order.
template <class Weight> inline void prefetch(const Weight* next, std::int64_t k) {
  for (std::int64_t i = 0; i < 4; ++i) __builtin_prefetch(next + 4 * k + i * kLine<Weight>, 0, 3);
}

// Multiplies four rows of weights by R rows of x. It prefetches the panel `next` while it computes.
template <int R, class Weight>
inline void panel(const Weight* const (&w)[4], std::int64_t in, const Weight* next, const float* x,
    std::int64_t ldx, SumsOfRow* lanes) {
  constexpr std::int64_t kLanes = PackedMatrix::kLanes;
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
  for (; k + kLine<Weight> <= in; k += kLine<Weight>) {
    prefetch(next, k);
    for (std::int64_t j = 0; j < kLine<Weight>; j += kLanes) step(k + j);
  }
  for (; k < in; k += kLanes) step(k);
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < 4; ++i) sum[i][r].store(lanes[r][i]);
}

// Calls f with `n` as a constant of 1 to `most`.
template <int most, class F> inline void with_constant(std::int64_t n, const F& f) {
  const auto call = [&]<int... i>(std::integer_sequence<int, i...>) {
    ((n == i + 1 ? f(std::integral_constant<int, i + 1>()) : void()), ...);
  };
  call(std::make_integer_sequence<int, most>());
}

// Computes one lane of the sums of a tile: x (rows, steps) with row stride ldx, w (steps,
// kTileColumns), sums (rows, vectors) Parts.
template <int rows, int vectors>
[[gnu::noinline]] void tile(
    const float* x, std::int64_t ldx, const float* w, std::int64_t steps, float* sums) {
  Part sum[rows][vectors];
  for (std::int64_t step = 0; step < steps; ++step, w += kTileColumns) {
    Part weight[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) weight[v] = Part::load(w + v * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Part value = Part::all(x[r * ldx + step]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v].add_product(weight[v], value);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[r][v].store(sums + (r * vectors + v) * kWidth);
}

// Transposes x (steps, lanes).
void by_lanes(const float* x, std::int64_t steps, float* to) {
  constexpr std::int64_t kLanes = PackedMatrix::kLanes;
  if (steps < kWidth)
    for (std::int64_t k = 0; k < steps * kLanes; ++k) to[k % kLanes * steps + k / kLanes] = x[k];
  for (std::int64_t next = 0; steps >= kWidth && next < steps; next += kWidth)
    for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
      const std::int64_t step = std::min(next, steps - kWidth);
      PartFloats square[kWidth];
#pragma GCC unroll 16
      for (int i = 0; i < kWidth; ++i)
        square[i] = nn::vec::load<PartFloats>(x + (step + i) * kLanes + lane);
      nn::vec::transpose(square, to + lane * steps + step, steps);
    }
}

// Transposes the weights (outputs, stride) of the first kTileColumns outputs to (lanes, steps,
// kTileColumns). It prefetches the outputs that follow.
template <class Weight>
void transpose_tile(const Weight* weights, std::int64_t outputs, std::int64_t stride, float* to) {
  constexpr std::int64_t kLanes = PackedMatrix::kLanes;
  const std::int64_t steps = stride / kLanes;
  for (std::int64_t column = 0; column < kTileColumns; column += kWidth) {
    const Weight* row[kWidth];
    for (std::int64_t i = 0; i < kWidth; ++i)  // outputs past the end are computed and dropped
      row[i] = weights + std::min(column + i, outputs - 1) * stride;
    const std::int64_t ahead = 2 * kTileColumns <= outputs ? kTileColumns * stride : 0;
    for (std::int64_t step = 0; step < steps; ++step)
      for (std::int64_t lane = 0; lane < kLanes; lane += kWidth) {
        const std::int64_t k = step * kLanes + lane;
        PartFloats square[kWidth];
#pragma GCC unroll 16
        for (int i = 0; i < kWidth; ++i) square[i] = (PartFloats)Part::load(row[i] + k).v;
        if (k % kLine<Weight> == 0)
          for (const Weight* const at : row) __builtin_prefetch(at + ahead + k, 0, 2);
        nn::vec::transpose(
            square, to + (lane * steps + step) * kTileColumns + column, steps * kTileColumns);
      }
  }
}

#ifdef __AVX512F__
#define INFER_HALF_PRODUCTS [[gnu::target("avx512f,avx512bf16")]]
// Thirty-two weights as bfloat16; `n` is 16 or 32, the others are zero. int8 converts exactly.
template <int n> INFER_HALF_PRODUCTS inline __m512bh halves(const std::uint16_t* p) {
  return (__m512bh)(n == 32 ? _mm512_loadu_si512(p)
                            : _mm512_zextsi256_si512(
                                  _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
}
template <int n> INFER_HALF_PRODUCTS inline __m512bh halves(const std::int8_t* p) {
  const __m512 high = n == 32 ? Lanes::load(p + 16).v : _mm512_setzero_ps();
  return _mm512_cvtne2ps_pbh(high, Lanes::load(p).v);
}

// The sums of four vectors, each in the same order.
INFER_HALF_PRODUCTS inline __m128 sums_of(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512d ab = _mm512_castps_pd(
      _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));  // a0 + a2, b0 + b2, ...
  const __m512d cd =
      _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
  const __m512 quarters = _mm512_add_ps(
      _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(quarters),
      _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(quarters), 1)));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

template <int n, int R, class Weight>
INFER_HALF_PRODUCTS inline void half_step(const Weight* const (&w)[4], std::int64_t k,
    const std::uint16_t* x, std::int64_t ldx, __m512 (&sum)[R][4]) {
  __m512bh weight[4];
  for (int i = 0; i < 4; ++i) weight[i] = halves<n>(w[i] + k);
  for (int r = 0; r < R; ++r) {
    const auto value = (__m512bh)_mm512_loadu_si512(x + r * ldx + k);
    for (int i = 0; i < 4; ++i) sum[r][i] = _mm512_dpbf16_ps(sum[r][i], weight[i], value);
  }
}

// Multiplies four rows of weights by R rows of bfloat16, which are zero from `in` on to the next
// multiple of 32: y (R, 4). Lane l adds the products 32 j + 2 l and 32 j + 2 l + 1 in the order of
// j, for every R.
template <int R, class Weight>
INFER_HALF_PRODUCTS inline void half_panel(const Weight* const (&w)[4], std::int64_t in,
    const Weight* next, const std::uint16_t* x, std::int64_t ldx, float (*y)[4]) {
  __m512 sum[R][4];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < 4; ++i) sum[r][i] = _mm512_setzero_ps();
  std::int64_t k = 0;
  for (; k + 32 <= in; k += 32) {
    if (k % kLine<Weight> == 0) prefetch(next, k);
    half_step<32>(w, k, x, ldx, sum);
  }
  if (k < in) half_step<16>(w, k, x, ldx, sum);
  for (int r = 0; r < R; ++r)
    _mm_storeu_ps(y[r], sums_of(sum[r][0], sum[r][1], sum[r][2], sum[r][3]));
}

template <class Weight>
INFER_HALF_PRODUCTS void half_rows(const Weight* const (&w)[4], std::int64_t in, const Weight* next,
    const std::uint16_t* x, std::int64_t ldx, std::int64_t rows, float (*y)[4]) {
  for (; rows >= 6; rows -= 6, x += 6 * ldx, y += 6) half_panel<6>(w, in, next, x, ldx, y);
  with_constant<5>(rows, [&](auto n) { half_panel<n>(w, in, next, x, ldx, y); });
}
#endif

std::size_t number_bytes(Precision precision) {
  return precision == Precision::float32 ? 4 : precision == Precision::bfloat16 ? 2 : 1;
}

constexpr std::int64_t padded_to_lanes(std::int64_t width) {
  return (width + PackedMatrix::kLanes - 1) / PackedMatrix::kLanes * PackedMatrix::kLanes;
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
  int nan = 0, more = 0;  // more than -inf; clang begins a maximum with the lowest finite number
#pragma omp simd reduction(max : max) reduction(| : nan, more)
  for (std::int64_t i = 0; i < n; ++i) {
    max = x[i] > max ? x[i] : max;
    nan |= x[i] != x[i], more |= x[i] > -HUGE_VALF;
  }
  return nan != 0 ? std::nanf("") : more != 0 ? max : -HUGE_VALF;
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
  nn::vec::rms_norm(x, weight, bias, n, epsilon, y);
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
  nn::vec::turn(cos, sin, pairs, x);
}

void add(const float* x, std::int64_t n, float* y) { nn::vec::add(x, n, y); }

void attention_scores(const float* q, const float* k, std::int64_t stride, std::int64_t n,
    std::int64_t width, float scale, float* out) {
  for (std::int64_t i = 0; i < n; ++i) { out[i] = nn::vec::dot(q, k + i * stride, width) * scale; }
}

namespace {

template <int kQueries>
void lane_scores(
    const float* const* q, const float* k, std::int64_t width, float scale, float* const* out) {
  constexpr int kVectors = kScoreLanes / nn::vec::kFloats;
  nn::vec::Floats sum[kQueries][kVectors] = {};
  for (std::int64_t c = 0; c < width; ++c)
#pragma GCC unroll 8
    for (int r = 0; r < kQueries; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j)
        sum[r][j] += q[r][c] * nn::vec::load(k + c * kScoreLanes + j * nn::vec::kFloats);
  for (int r = 0; r < kQueries; ++r)
    for (int j = 0; j < kVectors; ++j)
      nn::vec::store(out[r] + j * nn::vec::kFloats, scale * sum[r][j]);
}

}  // namespace

void lane_scores(const float* const* q, std::int64_t queries, const float* k, std::int64_t width,
    float scale, float* const* out) {
  constexpr int kMost = nn::vec::kFloats / 2;  // with them, eight sums of a vector are independent
  for (; queries >= kMost; queries -= kMost, q += kMost, out += kMost)
    lane_scores<kMost>(q, k, width, scale, out);
  for (; queries > 0; --queries, ++q, ++out) lane_scores<1>(q, k, width, scale, out);
}

void add_weighted(const float* weights, const float* v, std::int64_t stride, std::int64_t n,
    std::int64_t width, float* out) {
  using nn::vec::kFloats, nn::vec::load;
  constexpr std::int64_t kVectors = 64 / kFloats;
  std::int64_t first = 0;
  for (; first + 64 <= width; first += 64) {  // sums stay in registers
    nn::vec::Floats sum[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) sum[j] = load(out + first + j * kFloats);
    for (std::int64_t i = 0; i < n; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j)
        sum[j] += weights[i] * load(v + i * stride + first + j * kFloats);
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) nn::vec::store(out + first + j * kFloats, sum[j]);
  }
  for (std::int64_t i = 0; i < n; ++i)
    nn::vec::add_scaled(weights[i], v + i * stride + first, width - first, out + first);
}

Precision parse_precision(const std::string& name) {
  if (name == "float32") return Precision::float32;
  if (name == "bfloat16") return Precision::bfloat16;
  if (name == "int8") return Precision::int8;
  if (name == "file") return Precision::file;
  core::bad_usage("--dtype: takes float32, bfloat16, int8 or file, not '{}'", name);
}

namespace {

// Returns `size` zero bytes, aligned for a cache line. The matrices of a model follow one another
// in huge pages: every token reads all of them, and with small pages address translation takes up
// to a tenth of the time.
std::shared_ptr<std::byte[]> room_for(std::size_t size) {
  constexpr std::size_t kChunk = std::size_t{32} << 20, kAlignment = 64;
  struct Chunk {
    core::HugeArray<std::byte> bytes;
    std::size_t used = 0;
  };
  static std::mutex mutex;
  static std::weak_ptr<Chunk> last;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Chunk> chunk = last.lock();
  if (chunk == nullptr || chunk->used + size > chunk->bytes.size()) {
    chunk = std::make_shared<Chunk>();
    chunk->bytes = core::HugeArray<std::byte>(std::max(size, kChunk));
    last = chunk;
  }
  std::byte* const begin = &chunk->bytes[0] + chunk->used;
  chunk->used += (size + kAlignment - 1) / kAlignment * kAlignment;
  return {chunk, begin};
}

}  // namespace

PackedMatrix::PackedMatrix(std::int64_t out, std::int64_t in, Precision precision)
    : out_(out), in_(in), stride_(padded_to_lanes(in)), precision_(precision) {
  const auto numbers = static_cast<std::size_t>(out_ * stride_) * number_bytes(precision_);
  const auto scales = precision_ == Precision::int8 ? static_cast<std::size_t>(out_) : 0;
  const auto size = numbers + scales * sizeof *scales_;
  own_ = room_for(size);
  const std::byte* const begin = own_.get();
  if (precision_ == Precision::float32) floats_ = reinterpret_cast<const float*>(begin);
  if (precision_ == Precision::bfloat16) halves_ = reinterpret_cast<const std::uint16_t*>(begin);
  if (precision_ != Precision::int8) return;
  bytes_ = reinterpret_cast<const std::int8_t*>(begin);
  scales_ = reinterpret_cast<const float*>(begin + numbers);
}

template <class Weight>
PackedMatrix::PackedMatrix(
    const Weight* weight, std::int64_t out, std::int64_t in, Precision precision) {
  constexpr bool wide = std::is_same_v<Weight, float>;
  if (precision != (wide ? Precision::float32 : Precision::bfloat16) || padded_to_lanes(in) != in) {
    *this = PackedMatrix(out, in, precision);
    convert(0, out, weight);
    return;
  }
  out_ = out, in_ = in, stride_ = in, precision_ = precision;
  if constexpr (wide) floats_ = weight;
  else halves_ = weight;
}
template PackedMatrix::PackedMatrix(const float*, std::int64_t, std::int64_t, Precision);
template PackedMatrix::PackedMatrix(const std::uint16_t*, std::int64_t, std::int64_t, Precision);

PackedMatrix::PackedMatrix(std::shared_ptr<const BlockMatrix> blocks, std::int64_t in)
    : out_(blocks->out()), in_(in), stride_(in), precision_(Precision::file),
      blocks_(std::move(blocks)) {}

void PackedMatrix::set_rows(std::int64_t first, std::int64_t rows, const float* weight) {
  convert(first, rows, weight);
}

// Packs rows into own_.
template <class Weight>
void PackedMatrix::convert(std::int64_t first, std::int64_t rows, const Weight* weight) {
  const auto fill = [&](auto* to, const auto& of) {
#pragma omp parallel for
    for (std::int64_t o = 0; o < rows; ++o)
      for (std::int64_t i = 0; i < in_; ++i)
        to[(first + o) * stride_ + i] = of(first + o, to_float(weight[o * in_ + i]));
  };
  switch (precision_) {
    case Precision::float32:
      fill(const_cast<float*>(floats_), [](std::int64_t, float w) { return w; });
      break;
    case Precision::bfloat16:
      fill(const_cast<std::uint16_t*>(halves_),
          [](std::int64_t, float w) { return to_bfloat16(w); });
      break;
    case Precision::int8:
      for (std::int64_t o = 0; o < rows; ++o) {
        float largest = 0;
        for (std::int64_t i = 0; i < in_; ++i)
          largest = std::max(largest, std::abs(to_float(weight[o * in_ + i])));
        const_cast<float*>(scales_)[first + o] = largest / 127;
      }
      fill(const_cast<std::int8_t*>(bytes_), [&](std::int64_t o, float w) {
        const float scale = scales_[o];
        return static_cast<std::int8_t>(scale > 0 ? std::nearbyint(w / scale) : 0);
      });
      break;
    case Precision::file: core::bug("weights have no blocks to pack");
  }
}

PackedMatrix PackedMatrix::rows(std::int64_t first, std::int64_t rows) const {
  PackedMatrix part = *this;
  part.out_ = rows;
  if (floats_ != nullptr) part.floats_ += first * stride_;
  if (halves_ != nullptr) part.halves_ += first * stride_;
  if (bytes_ != nullptr) part.bytes_ += first * stride_;
  if (scales_ != nullptr) part.scales_ += first;
  part.first_ += first;
  return part;
}

void PackedMatrix::row(std::int64_t index, float* out) const {
  if (blocks_ != nullptr) return blocks_->row(first_ + index, out);
  const auto begin = index * stride_;
  for (std::int64_t i = 0; i < in_; ++i)
    out[i] = floats_ != nullptr   ? floats_[begin + i]
             : halves_ != nullptr ? to_float(halves_[begin + i])
                                  : static_cast<float>(bytes_[begin + i]) * scales_[index];
}

// Four rows of weights from `p` on, and the panel after them.
template <class Weight> struct PackedMatrix::Panel {
  const Weight *w[4], *next;
  Panel(const PackedMatrix& of, const Weight* weights, std::int64_t p) {
    for (std::int64_t i = 0; i < kPanel; ++i)  // outputs past the end are computed and dropped
      w[i] = weights + std::min(kPanel * p + i, of.out_ - 1) * of.stride_;
    next = kPanel * (p + 2) <= of.out_ ? w[0] + kPanel * of.stride_ : w[0];
  }
};

// Writes the sums of panels first to last, (last - first + 1, rows, 4), for all rows.
void PackedMatrix::put(std::int64_t first, std::int64_t last, const float* sums, std::int64_t rows,
    float* y, std::int64_t ldy) const {
  for (std::int64_t r = 0; r < rows; ++r, sums += kPanel)
    for (std::int64_t p = first; p <= last; ++p) {
      const float* const from = sums + (p - first) * rows * kPanel;
      float* const to = y + r * ldy + kPanel * p;
      const auto write = [&](std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = scales_ == nullptr ? from[i] : from[i] * scales_[kPanel * p + i];
      };
      if (kPanel * (p + 1) <= out_) write(kPanel);
      else write(out_ - kPanel * p);
    }
}

template <class Weight>
void PackedMatrix::multiply(const Weight* weights, const float* x, std::int64_t rows,
    std::int64_t ldx, std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy) const {
  if (rows > kFewRows) return multiply_many(weights, x, rows, ldx, begin, end, y, ldy);
  with_constant<kFewRows>(rows, [&](auto n) {
    for (std::int64_t p = begin; p < end; ++p) {
      const Panel<Weight> of(*this, weights, p);
      SumsOfRow lanes[n];
      panel<n>(of.w, stride_, of.next, x, ldx, lanes);
      float sums[n][kPanel];
      for (int r = 0; r < n; ++r) sums_of(lanes[r], sums[r]);
      put(p, p, sums[0], n, y, ldy);
    }
  });
}

// Transposes x and each tile of weights, and computes each lane of the sums of a tile by itself.
template <class Weight>
void PackedMatrix::multiply_many(const Weight* weights, const float* x, std::int64_t rows,
    std::int64_t ldx, std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy) const {
  constexpr std::int64_t kMostRows = 512;
  for (; rows > kMostRows; rows -= kMostRows, x += kMostRows * ldx, y += kMostRows * ldy)
    multiply_many(weights, x, kMostRows, ldx, begin, end, y, ldy);
  thread_local std::vector<Line> by_lane, tiles;
  const std::int64_t steps = stride_ / kLanes, stride = stride_ + kLanes;
  float* const all_x = at_least(by_lane, rows * (steps + 1))->at;
  for (std::int64_t r = 0; r < rows; ++r) by_lanes(x + r * ldx, steps, all_x + r * stride);
  float* const tile_of = at_least(tiles, steps * kTileColumns)->at;
  const std::int64_t last = std::min(kPanel * end, out_),
                     groups = (rows + kTileRows - 1) / kTileRows;
  for (std::int64_t o = kPanel * begin; o < last; o += kTileColumns) {
    transpose_tile(weights + o * stride_, out_ - o, stride_, tile_of);
    const std::int64_t columns = std::min<std::int64_t>(kTileColumns, last - o);
    with_constant<kVectors>((columns + kWidth - 1) / kWidth, [&](auto vectors) {
      for (std::int64_t g = 0; g < groups; ++g) {
        const std::int64_t first = rows * g / groups;
        with_constant<kTileRows>(rows * (g + 1) / groups - first, [&](auto n) {
          alignas(64) float lanes[kLanes][n * vectors * kWidth], sums[n * vectors * kWidth];
          for (std::int64_t lane = 0; lane < kLanes; ++lane)
            tile<n, vectors>(all_x + first * stride + lane * steps, stride,
                tile_of + lane * steps * kTileColumns, steps, lanes[lane]);
          for (int i = 0; i < n * vectors * kWidth; i += kWidth) {
            const auto sum =
                sum_of_lanes([&](int lane) { return nn::vec::load<PartFloats>(lanes[lane] + i); });
            std::memcpy(sums + i, &sum, sizeof sum);
          }
          for (std::int64_t r = 0; r < n; ++r)
            for (std::int64_t i = 0; i < columns; ++i)
              y[(first + r) * ldy + o + i] =
                  sums[r * vectors * kWidth + i] * (scales_ == nullptr ? 1 : scales_[o + i]);
        });
      }
    });
  }
}

void PackedMatrix::multiply(const float* x, std::int64_t rows, std::int64_t ldx, std::int64_t begin,
    std::int64_t end, float* y, std::int64_t ldy) const {
  if (floats_ != nullptr) multiply(floats_, x, rows, ldx, begin, end, y, ldy);
  if (halves_ != nullptr) multiply(halves_, x, rows, ldx, begin, end, y, ldy);
  if (bytes_ != nullptr) multiply(bytes_, x, rows, ldx, begin, end, y, ldy);
  if (blocks_ != nullptr)
    blocks_->multiply(x, rows, ldx, first_ + kPanel * begin, first_ + std::min(kPanel * end, out_),
        y + kPanel * begin, ldy);
}

bool has_half_products() {
#ifdef __AVX512F__
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
#else
  return false;
#endif
}

void PackedMatrix::multiply_halves(const float* x, std::int64_t rows, std::int64_t ldx,
    std::int64_t begin, std::int64_t end, float* y, std::int64_t ldy,
    [[maybe_unused]] bool tiles) const {
  if (precision_ == Precision::float32 || blocks_ != nullptr || !has_half_products())
    return multiply(x, rows, ldx, begin, end, y, ldy);
#ifdef __AVX512F__
  if (tiles) {
    const auto product = [&]<class Weight>(const Weight* weights) {
      multiply_tiles(TileWeights<Weight>{weights, out_, stride_, scales_}, x, rows, ldx,
          kPanel * begin, std::min(kPanel * end, out_), y, ldy);
    };
    return halves_ != nullptr ? product(halves_) : product(bytes_);
  }
  constexpr std::int64_t kPairs = 32, kManyRows = 6;
  const auto wide = (stride_ + kPairs - 1) / kPairs * kPairs;
  thread_local std::vector<std::uint16_t> rounded, panel;
  thread_local std::vector<float> sums;
  std::uint16_t* const halves = at_least(rounded, rows * wide);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < stride_; ++i) halves[r * wide + i] = to_bfloat16(x[r * ldx + i]);
    std::fill(halves + r * wide + stride_, halves + (r + 1) * wide, std::uint16_t{0});
  }
  auto* const line = reinterpret_cast<float(*)[kPanel]>(at_least(sums, 4 * rows * kPanel));
  for (std::int64_t p = begin, first = begin; p < end; ++p) {
    auto* const made = line + (p - first) * rows;
    if (halves_ != nullptr) {
      const Panel of(*this, halves_, p);
      half_rows(of.w, stride_, of.next, halves, wide, rows, made);
    } else if (const Panel of(*this, bytes_, p); rows <= kManyRows) {
      half_rows(of.w, stride_, of.next, halves, wide, rows, made);
    } else {  // each weight is converted once
      std::uint16_t* const to = at_least(panel, kPanel * stride_);
      for (std::int64_t i = 0; i < kPanel; ++i)
        for (std::int64_t k = 0; k < stride_; ++k)
          to[i * stride_ + k] = static_cast<std::uint16_t>(
              std::bit_cast<std::uint32_t>(static_cast<float>(of.w[i][k])) >> 16);
      const std::uint16_t* const w[] = {to, to + stride_, to + 2 * stride_, to + 3 * stride_};
      half_rows(w, stride_, w[0], halves, wide, rows, made);
    }
    if (p - first == 3 || p + 1 == end) put(first, p, line[0], rows, y, ldy), first = p + 1;
  }
#endif
}

}  // namespace infer
